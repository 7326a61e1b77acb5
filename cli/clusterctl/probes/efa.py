"""EFA devices and their hardware counters, from sysfs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

# Devices by their driver: some instance types have other RDMA devices, too (p6-b200: 8 of 10, 2026-05).
COMMAND = """
for device in /sys/class/infiniband/*; do
  [ "$(basename "$(readlink "$device/device/driver" 2>/dev/null)")" = efa ] || continue
  echo "device ${device##*/} $(cat "$device/ports/1/state" 2>/dev/null)"
  for counter in "$device"/ports/1/hw_counters/*; do
    [ -r "$counter" ] && echo "${counter##*/} $(cat "$counter")"
  done
done
"""

# Counters that stay at 0 on a healthy fabric (names: the Linux driver's efa_verbs.c, checked 2026-11).
ERROR_COUNTERS = (
    "rx_drops",
    "rdma_read_wr_err",
    "rdma_write_wr_err",
    "impaired_remote_conn_events",
    "unresponsive_remote_events",
)


@dataclass(frozen=True, kw_only=True)
class EfaReading:
    """All devices together."""

    devices: int
    active: int
    counters: Mapping[str, int]


def parse_efa(text: str) -> EfaReading:
    """Devices and the sums of their counters. Raises ProbeUnreadable."""
    devices = active = 0
    counters: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if not name:
            continue
        if name == "device":
            devices += 1
            active += "ACTIVE" in value
        elif value.strip().isdigit():
            counters[name] = counters.get(name, 0) + int(value)
        else:
            raise ProbeUnreadable(f"EFA counters: {first_words(line)}")
    return EfaReading(devices=devices, active=active, counters=counters)


EFA = Probe(name="efa", meaning="EFA devices and their error counters", command=COMMAND, limit_s=10, parse=parse_efa)
