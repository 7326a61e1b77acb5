"""Finding our own processes by what they were started with, without a file that can lie."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUPERVISOR_MODULE = "clusterctl_rehearsal.machines.supervisor"
END_NOW_SIGNAL = signal.SIGUSR1  # a supervisor kills its machine, tidies up and ends
_END_TIMEOUT_S = 10.0
_POLL_S = 0.002


@dataclass(frozen=True, kw_only=True)
class Supervisor:
    """A living supervisor process and the machine it is for."""

    process_id: int
    root: str
    cluster: str
    node: str


def supervisors() -> Iterator[Supervisor]:
    """Every living supervisor on this computer."""
    for process_id, argv in running():
        found = parse_supervisor(process_id, argv)
        if found is not None:
            yield found


def parse_supervisor(process_id: int, argv: Sequence[str]) -> Supervisor | None:
    """The supervisor that a command line belongs to, if it is one."""
    if len(argv) < 5 or argv[-5:-3] != ["-m", SUPERVISOR_MODULE]:
        return None
    root, cluster, node = argv[-3:]
    return Supervisor(process_id=process_id, root=root, cluster=cluster, node=node)


def running() -> Iterator[tuple[int, list[str]]]:
    """Process id and command line of every living process; a zombie has no command line."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            line = Path(entry.path, "cmdline").read_bytes()
        except OSError:  # ended meanwhile
            continue
        if line:
            yield int(entry.name), line.decode(errors="replace").rstrip("\0").split("\0")


def end_supervisors(found: Sequence[Supervisor]) -> None:
    """End machines by their supervisors, and those supervisors that do not end in time."""
    for supervisor in found:
        _signal(supervisor.process_id, END_NOW_SIGNAL)
    for supervisor in found:
        if not _wait_until_gone(supervisor.process_id):
            _signal(supervisor.process_id, signal.SIGKILL)
            _wait_until_gone(supervisor.process_id)


def _signal(process_id: int, number: signal.Signals) -> None:
    try:
        os.kill(process_id, number)
    except ProcessLookupError:
        return


def _wait_until_gone(process_id: int) -> bool:
    """Whether a process ended in time; a zombie nobody has reaped yet counts as ended."""
    deadline = time.monotonic() + _END_TIMEOUT_S
    while _is_alive(process_id):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _is_alive(process_id: int) -> bool:
    try:
        return bool(Path(f"/proc/{process_id}/cmdline").read_bytes())
    except OSError:
        return False
