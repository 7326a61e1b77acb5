"""Finds our own processes by their command lines, without a file that could be out of date."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUPERVISOR_MODULE = "clusterctl_rehearsal.machines.supervisor"
PROCESS_SUPERVISOR_MODULE = "clusterctl_rehearsal.machines.process_supervisor"
HOLDER_MODULE = "clusterctl_rehearsal.machines.holder"
FIRST_PROCESS = "/usr/local/lib/clusterctl/machine/first_process.py"  # a path inside process machines
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


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A living process that holds a cluster's rootless network."""

    process_id: int
    root: str
    cluster: str


def supervisors(module: str = SUPERVISOR_MODULE) -> list[Supervisor]:
    """Every living supervisor of a kind on this computer."""
    found = (parse_supervisor(process_id, argv, module) for process_id, argv in running())
    return [supervisor for supervisor in found if supervisor is not None]


def parse_supervisor(process_id: int, argv: Sequence[str], module: str = SUPERVISOR_MODULE) -> Supervisor | None:
    """The supervisor that a command line belongs to, if it is one of that kind."""
    if len(argv) < 5 or list(argv[-5:-3]) != ["-m", module]:
        return None
    root, cluster, node = argv[-3:]
    return Supervisor(process_id=process_id, root=root, cluster=cluster, node=node)


def holders() -> list[Holder]:
    """Every living holder of a cluster's network on this computer."""
    found = (parse_holder(process_id, argv) for process_id, argv in running())
    return [holder for holder in found if holder is not None]


def parse_holder(process_id: int, argv: Sequence[str]) -> Holder | None:
    """The holder that a command line belongs to, if it is one."""
    if len(argv) < 4 or list(argv[-4:-2]) != ["-m", HOLDER_MODULE]:
        return None
    return Holder(process_id=process_id, root=argv[-2], cluster=argv[-1])


def parse_machine(argv: Sequence[str]) -> tuple[str, str] | None:
    """(cluster, node) from the command line of a process machine's bwrap or first process."""
    if len(argv) < 2 or argv[-2] != FIRST_PROCESS:
        return None
    cluster, _, node = argv[-1].partition("/")
    return cluster, node


def running() -> Iterator[tuple[int, list[str]]]:
    """Process id and command line of every living process; a zombie has no command line."""
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        if argv := command_line(int(name)):
            yield int(name), argv


def command_line(process_id: int) -> list[str]:
    """The words that a process was started with; empty if it has ended."""
    try:
        line = Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return []
    return line.decode(errors="replace").rstrip("\0").split("\0") if line else []


def end_supervisors(found: Sequence[Supervisor]) -> None:
    """Have supervisors end their machines and themselves; kill those that do not end in time."""
    for supervisor in found:
        send(supervisor.process_id, END_NOW_SIGNAL)
    for supervisor in found:
        if not wait_until_gone(supervisor.process_id):
            send(supervisor.process_id, signal.SIGKILL)
            wait_until_gone(supervisor.process_id)


def send(process_id: int, number: signal.Signals) -> None:
    """Signal a process that may be gone."""
    try:
        os.kill(process_id, number)
    except ProcessLookupError:
        return


def wait_until_gone(process_id: int) -> bool:
    """Wait for a process to end; returns whether it did in time. An unreaped zombie counts as ended."""
    deadline = time.monotonic() + _END_TIMEOUT_S
    while _is_alive(process_id):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def wait_until_made(namespace_prefix: str) -> None:
    """Wait for every `ip netns add` of a name with this prefix: such a process outlives a caller that was killed."""
    for process_id, argv in running():
        if argv[-3:-1] == ["netns", "add"] and argv[-1].startswith(namespace_prefix):
            wait_until_gone(process_id)


def owner_id(process_id: int) -> int | None:
    """The user that a process runs as; None for one that has ended."""
    try:
        return Path(f"/proc/{process_id}").stat().st_uid
    except OSError:
        return None


def _is_alive(process_id: int) -> bool:
    try:
        return bool(Path(f"/proc/{process_id}/cmdline").read_bytes())
    except OSError:
        return False
