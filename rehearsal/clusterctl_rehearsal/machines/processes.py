"""Finding our own processes by what they were started with, without a file that can lie."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUPERVISOR_MODULE = "clusterctl_rehearsal.machines.supervisor"
_END_TIMEOUT_S = 10.0


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


def end(process_id: int) -> None:
    """Kill a process and return once it is gone, reaped or not."""
    try:
        handle = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while _is_alive(process_id) and time.monotonic() < deadline:
            time.sleep(0.002)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def _is_alive(process_id: int) -> bool:
    try:
        return bool(Path(f"/proc/{process_id}/cmdline").read_bytes())
    except OSError:
        return False
