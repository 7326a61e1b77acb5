"""How busy a node's processors and memory are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

KIB_PER_GIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class LoadReading:
    """Processes that ran or waited over the last minute, and memory."""

    load: float
    cpus: int
    memory_total_gib: float
    memory_available_gib: float


def parse_load(text: str) -> LoadReading:
    """Reads /proc/loadavg, the count of processors, and two lines of /proc/meminfo. Raises ProbeUnreadable."""
    load = re.search(r"^(\d+\.\d+) \d+\.\d+ \d+\.\d+ ", text, re.MULTILINE)
    cpus = re.search(r"^(\d+)$", text, re.MULTILINE)
    total = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    free = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    if load is None or cpus is None or total is None or free is None:
        raise ProbeUnreadable(f"load: {first_words(text)}")
    return LoadReading(
        load=float(load[1]),
        cpus=int(cpus[1]),
        memory_total_gib=round(int(total[1]) / KIB_PER_GIB, 1),
        memory_available_gib=round(int(free[1]) / KIB_PER_GIB, 1),
    )


LOAD = Probe(
    name="load",
    meaning="load and memory",
    command="cat /proc/loadavg; nproc; grep -E '^Mem(Total|Available):' /proc/meminfo",
    limit_s=5,
    parse=parse_load,
)
