"""Waiting for what becomes true a moment later, and for processes to end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from clusterctl.ssh.watchdog import evaluated

POLL_S = 0.05


def comes_true(condition: Callable[[], bool], *, within_s: float = 20) -> bool:
    """Whether the condition is true at some time within `within_s`."""
    ends_at = time.monotonic() + within_s
    while time.monotonic() < ends_at:
        if condition():
            return True
        time.sleep(POLL_S)
    return False


def is_alive(pid: int) -> bool:
    """Running, and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def runs(leader: int, program: str) -> bool:
    """Whether a process below this one has become the program.

    A Ctrl-C that comes between a shell's fork and its child's exec may be lost: typed at the first word of a
    command, 19 of 1,000 in a subshell of bash 5.2, 73 of 200 in dash (2026-11-23).
    """
    with contextlib.suppress(OSError):
        children = [int(pid) for pid in Path(f"/proc/{leader}/task/{leader}/children").read_text().split()]
        named = any(Path(f"/proc/{pid}/comm").read_text() == f"{program}\n" for pid in children)
        return named or any(runs(pid, program) for pid in children)
    return False


def has_ended(pid: int, *, within_s: float = 20) -> bool:
    """Whether the process is gone in this time; sshd needs a moment to deliver a signal."""
    return comes_true(lambda: not is_alive(pid), within_s=within_s)


def watchers_of(leader: int) -> int:
    """How many shells have this group in their text, the leader's own aside."""
    text = evaluated(f"clusterctl_group={leader};").removeprefix("eval ").encode()
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += text in (folder / "cmdline").read_bytes()
    return found
