"""InfiniBand ports from sysfs: link, rate, LID, partitions, and which GPUs are near each adapter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

# Files and their meaning: Linux, Documentation/ABI/stable/sysfs-class-infiniband, and pkeys from
# drivers/infiniband/core/sysfs.c (2026-11-26). A P_Key table's unused entries are 0x0000.
COMMAND = """
for port in /sys/class/infiniband/*/ports/*; do
  [ "$(cat "$port/link_layer" 2>/dev/null)" = InfiniBand ] || continue
  device=${port%/ports/*}
  keys=$(cat "$port"/pkeys/* 2>/dev/null | grep -v '^0x0000$' | sort -u | tr '\\n' ' ')
  echo "port|${device##*/}:${port##*/}|$(cat "$port/state")|$(cat "$port/phys_state")|$(cat "$port/rate")|\
$(cat "$port/lid")|$(cat "$port/sm_lid")|$keys|$(readlink -f "$device/device")"
done
for gpu in /sys/bus/pci/drivers/nvidia/*:*:*.*; do
  [ -e "$gpu" ] && echo "gpu|$(readlink -f "$gpu")"
done
[ -d /sys/module/nvidia_peermem ] && echo "peermem|yes" || echo "peermem|no"
"""
_BRIDGE = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, kw_only=True)
class InfinibandPort:
    """One port whose link layer is InfiniBand."""

    name: str
    """`mlx5_0:1`, as NCCL_IB_HCA writes it."""
    state: str
    """`ACTIVE`, `DOWN`, `INIT` (no subnet manager has seen it), `ARMED`."""
    physical: str
    """`LinkUp`, `Polling` (no cable, or nobody at its other end), `Disabled`, …"""
    rate_gbps: float
    rate: str
    """`400 Gb/sec (4X NDR)`."""
    lid: int
    """Its address in the subnet; 0: none was given."""
    sm_lid: int
    """The subnet manager's LID."""
    partitions: tuple[str, ...]
    """P_Keys, sorted; `0xffff` is the default partition."""
    near_gpus: tuple[int, ...]
    """Indexes, in the order of nvidia-smi, of the GPUs behind the same PCIe switch; empty where none is."""


@dataclass(frozen=True, kw_only=True)
class InfinibandReading:
    """All ports of a node."""

    ports: tuple[InfinibandPort, ...]
    has_peermem: bool
    """Whether nvidia_peermem is loaded, by which adapters read and write the memory of GPUs."""
    gpus: int
    """How many GPUs are bound to NVIDIA's driver."""

    @property
    def active(self) -> int:
        """How many ports carry data."""
        return sum(port.state == "ACTIVE" for port in self.ports)


def parse_infiniband(text: str) -> InfinibandReading:
    """The ports, in the order of their names. Raises ProbeUnreadable."""
    rows = [line.strip().split("|") for line in text.splitlines() if line.strip()]
    gpus = sorted((row[1] for row in rows if row[0] == "gpu" and len(row) == 2), key=_bus_id)
    ports = [_port(row, gpus) for row in rows if row[0] == "port"]
    unknown = next((row for row in rows if row[0] not in ("port", "gpu", "peermem")), None)
    if unknown is not None:
        raise ProbeUnreadable(f"InfiniBand: {first_words('|'.join(unknown))}")
    return InfinibandReading(
        ports=tuple(sorted(ports, key=lambda port: (len(port.name), port.name))),
        has_peermem=["peermem", "yes"] in rows,
        gpus=len(gpus),
    )


def near(device: str, gpus: Sequence[str]) -> tuple[int, ...]:
    """The indexes of the GPUs whose sysfs paths share the most bridges with the device's; empty if none shares any."""
    shared = [_shared_bridges(device, gpu) for gpu in gpus]
    most = max(shared, default=0)
    return tuple(index for index, number in enumerate(shared) if number == most and most > 0)


def _port(row: list[str], gpus: Sequence[str]) -> InfinibandPort:
    try:
        _, name, state, physical, rate, lid, sm_lid, keys, device = row
        return InfinibandPort(
            name=name,
            state=_word(state),
            physical=_word(physical),
            rate_gbps=float(rate.split()[0]),
            rate=rate,
            lid=int(lid, 16),
            sm_lid=int(sm_lid, 16),
            partitions=tuple(keys.split()),
            near_gpus=near(device, gpus),
        )
    except (ValueError, IndexError) as e:
        raise ProbeUnreadable(f"InfiniBand: {first_words('|'.join(row))}") from e


def _word(text: str) -> str:
    """`4: ACTIVE` is ACTIVE."""
    number, _, word = text.partition(": ")
    if not number.isdigit() or not word:
        raise ValueError(text)
    return word


def _shared_bridges(one_path: str, other_path: str) -> int:
    """How many bridges are above both, the root complex aside: devices at its own ports share none."""
    shared = 0
    for mine, other in zip(_bridges(one_path), _bridges(other_path), strict=False):
        if mine != other:
            break
        shared += 1
    return shared


def _bridges(path: str) -> list[str]:
    """The PCI functions above the device, from the root port down."""
    return [word for word in path.split("/") if _BRIDGE.fullmatch(word)][:-1]


def _bus_id(path: str) -> str:
    return path.rpartition("/")[2]


INFINIBAND = Probe(
    name="infiniband",
    meaning="InfiniBand ports: link, rate, LID, partitions, near GPUs",
    command=COMMAND,
    limit_s=10,
    parse=parse_infiniband,
)
