"""The processes of an unprivileged machine, found by the command line of its first process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from clusterctl_rehearsal.machines.cgroup import is_first_process
from clusterctl_rehearsal.machines.driver import MachineState
from clusterctl_rehearsal.machines.processes import command_line, parse_machine, running

_STOP_ROUNDS = 5
_STOP_TIMEOUT_S = 5.0


def machines() -> dict[tuple[str, str], list[int]]:
    """The process ids of every machine's bwrap and first process, by (cluster, node), whoever started them."""
    found: dict[tuple[str, str], list[int]] = {}
    for process_id, argv in running():
        machine = parse_machine(argv)
        if machine is not None:
            found.setdefault(machine, []).append(process_id)
    return found


def first_process(cluster: str, node: str) -> int | None:
    """The process id, here, of the machine's process number 1; None if the machine is not up."""
    return _first_among(machines().get((cluster, node), []), _read)


def _first_among(process_ids: Iterable[int], read: Callable[[int, str], str]) -> int | None:
    return next((number for number in process_ids if is_first_process(read(number, "status"))), None)


class MachineStates:
    """States of machines. Remembers their processes, so that a repeated look need not search all of /proc."""

    def __init__(
        self,
        *,
        search: Callable[[], Mapping[tuple[str, str], list[int]]] = machines,
        command_line: Callable[[int], Sequence[str]] = command_line,
        read: Callable[[int, str], str] | None = None,
    ) -> None:
        """`search`: finds the processes of all machines. `command_line`: the argv of one process. `read`: the text of
        a file, by its name, in one process's folder in /proc. Tests pass their own.
        """
        self._search = search
        self._command_line = command_line
        self._read = _read if read is None else read
        self._known: dict[tuple[str, str], list[int]] = {}

    def state(self, cluster: str, node: str) -> MachineState:
        """Gone if the machine has no process; frozen if its bwrap or its first process is stopped."""
        machine = (cluster, node)
        processes = self._known.get(machine, [])
        if not processes or any(parse_machine(self._command_line(number)) != machine for number in processes):
            processes = self._search().get(machine, [])
            # A search while the machine starts finds only some of its processes.
            self._known[machine] = processes if _first_among(processes, self._read) is not None else []
        if any(is_stopped(self._read(number, "stat")) for number in processes):
            return MachineState.FROZEN
        return MachineState.RUNNING if processes else MachineState.GONE


def send_to_all(first: int, number: signal.Signals) -> None:
    """Signal every process of a machine; several times, as a process may just have forked."""
    for _ in range(_STOP_ROUNDS):
        before = set(descendants(first))
        for process_id in before:
            try:
                os.kill(process_id, number)
            except ProcessLookupError:
                continue
        if set(descendants(first)) == before:
            return
        time.sleep(0.005)


def wait_until_stopped(first: int) -> None:
    """Wait until a process that was sent SIGSTOP stands still or is gone, which takes a while on a busy computer.

    Raises TimeoutError.
    """
    until = time.monotonic() + _STOP_TIMEOUT_S
    while time.monotonic() < until:
        stat = _read(first, "stat")
        if not stat or is_stopped(stat):
            return
        time.sleep(0.005)
    raise TimeoutError(f"process {first} did not stop within {_STOP_TIMEOUT_S:.0f} s of SIGSTOP")


def descendants(first: int) -> Iterator[int]:
    """A process and all its descendants; in a machine, number 1 adopts orphans, so none is missed."""
    yield first
    for child in children(first):
        yield from descendants(child)


def children(process_id: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    for file in Path(f"/proc/{process_id}/task").glob("*/children"):
        try:
            found += [int(word) for word in file.read_text().split()]
        except OSError:  # ended meanwhile
            continue
    return found


def is_stopped(stat: str) -> bool:
    """Whether the text of /proc/<pid>/stat is that of a stopped process."""
    return stat.rpartition(")")[2].split()[:1] == ["T"]


def _read(process_id: int, name: str) -> str:
    try:
        return Path(f"/proc/{process_id}/{name}").read_text()
    except OSError:  # ended meanwhile
        return ""
