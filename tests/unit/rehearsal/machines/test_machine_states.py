"""The states of unprivileged machines: their processes are searched for once, and again when they have changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusterctl_rehearsal.machines.driver import MachineState
from clusterctl_rehearsal.machines.machine_processes import MachineStates
from clusterctl_rehearsal.machines.processes import FIRST_PROCESS

TRAIN_0 = ("train", "train-0")
BWRAP, FIRST = 100, 101


class Processes:
    """The processes of this computer: whose machine each belongs to, and its state."""

    def __init__(self) -> None:
        self.machine_of = {BWRAP: TRAIN_0, FIRST: TRAIN_0}
        self.stopped: set[int] = set()
        self.firsts = {FIRST}
        self.searches = 0
        self.states = MachineStates(search=self.search, command_line=self.command_line, read=self.read)

    def search(self) -> dict[tuple[str, str], list[int]]:
        self.searches += 1
        found: dict[tuple[str, str], list[int]] = {}
        for number, machine in self.machine_of.items():
            found.setdefault(machine, []).append(number)
        return found

    def command_line(self, number: int) -> Sequence[str]:
        machine = self.machine_of.get(number)
        return [] if machine is None else ["python3", FIRST_PROCESS, "/".join(machine)]

    def read(self, number: int, name: str) -> str:
        if number not in self.machine_of:
            return ""
        if name == "status":
            return f"Name:\tpython3\nNSpid:\t{number}\t{1 if number in self.firsts else 2}\n"
        return f"{number} (python3) {'T' if number in self.stopped else 'S'} 1"

    def state(self) -> MachineState:
        return self.states.state(*TRAIN_0)


@pytest.fixture
def processes() -> Processes:
    return Processes()


def test_processes_that_are_known_are_not_searched_for_again(processes: Processes) -> None:
    assert [processes.state() for _ in range(3)] == [MachineState.RUNNING] * 3
    assert processes.searches == 1


def test_a_process_that_is_gone_or_another_machine_s_now_leads_to_a_new_search(processes: Processes) -> None:
    processes.state()
    processes.machine_of[BWRAP] = ("train", "train-1")
    processes.machine_of[200] = TRAIN_0
    assert processes.state() is MachineState.RUNNING
    assert processes.searches == 2
    for number in (FIRST, 200):
        del processes.machine_of[number]
    assert processes.state() is MachineState.GONE
    assert processes.searches == 3


def test_what_a_search_finds_while_the_machine_starts_is_not_remembered(processes: Processes) -> None:
    del processes.machine_of[FIRST]
    assert processes.state() is MachineState.RUNNING
    processes.machine_of[FIRST] = TRAIN_0
    processes.stopped = {FIRST}
    assert processes.state() is MachineState.FROZEN, "its first process is stopped"
    assert processes.searches == 2
    processes.state()
    assert processes.searches == 2


@pytest.mark.parametrize("stopped", [BWRAP, FIRST])
def test_a_machine_is_frozen_while_a_process_of_its_is_stopped(processes: Processes, stopped: int) -> None:
    processes.state()
    processes.stopped = {stopped}
    assert processes.state() is MachineState.FROZEN
    processes.stopped = set()
    assert processes.state() is MachineState.RUNNING
    assert processes.searches == 1
