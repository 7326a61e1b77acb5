"""Which processes are seen from here, and by which numbers: a container has its own, and may share its host's name."""

from __future__ import annotations

import os

from clusterctl.system.processes import PROC

INITIAL = "pid:[4026531836]"
"""The computer's own namespace, from which all others are seen (PROC_PID_INIT_INO in Linux's linux/proc_ns.h)."""


def pid_namespace() -> str:
    """What tells this process's pid namespace from others of this boot; empty where there is no /proc."""
    try:
        return os.readlink(PROC / "self" / "ns" / "pid")
    except OSError:
        return ""


def inner_number(status: str) -> int | None:
    """The number that a process has in its container, by its /proc/PID/status; None: it is in none. Pure."""
    line = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
    numbers = line.split()[1:]
    return int(numbers[-1]) if len(numbers) > 1 else None


def numbered_within(number: int) -> tuple[int, ...]:
    """The pids, as they are here, of processes that have this number in a container on this computer."""
    found = []
    for entry in os.listdir(PROC) if PROC.is_dir() else ():
        try:
            if entry.isdigit() and inner_number((PROC / entry / "status").read_text(errors="replace")) == number:
                found.append(int(entry))
        except OSError:  # gone meanwhile
            continue
    return tuple(found)
