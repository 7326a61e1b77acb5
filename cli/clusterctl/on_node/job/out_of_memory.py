"""Whether the kernel has killed a process of the job for want of memory: by the kernel's counts, and when they grew."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Optional

NEAR_S = 10.0
"""How far a rank's kill may be from the growth of a count that explains it; it is read twenty times a second."""


class OutOfMemory:
    """The kernel's counts, and when they last grew."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._count = out_of_memory_kills(root)
        self._grew_s: Optional[float] = None

    def look(self) -> None:
        """Reads the counts."""
        count = out_of_memory_kills(self._root)
        if count > self._count:
            self._count, self._grew_s = count, time.time()

    def is_near(self, at_s: float) -> bool:
        """Whether the kernel killed something for want of memory about then (Unix time)."""
        self.look()
        return self._grew_s is not None and abs(self._grew_s - at_s) < NEAR_S


def out_of_memory_kills(root: Path = Path("/")) -> int:
    """How many processes of our cgroup the kernel has killed; of the whole machine where no cgroup says it.

    memory.events (cgroup v2), memory.oom_control (v1), both in the kernel's own documentation; /proc/vmstat since 4.13.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = "sys/fs/cgroup" + path if not controllers else "sys/fs/cgroup/memory" + path
        name = "memory.events" if not controllers else "memory.oom_control"
        found = _count(root / below / name) if controllers in ("", "memory") else None
        if found is not None:
            return found
    return _count(root / "proc/vmstat") or 0


def _count(path: Path) -> Optional[int]:
    """The row `oom_kill`; None where there is none."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
        return next((int(row[1]) for row in rows if row[0] == "oom_kill"), None)
    except (OSError, ValueError, IndexError):
        return None
