"""Which machine driver to use here, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterctl_rehearsal.machines.driver import MachineDriver, MachineError
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.process import ProcessDriver
from clusterctl_rehearsal.machines.records import RecordsDriver

MachineKind = Literal["auto", "nspawn", "process", "none"]
_WHAT = {
    "nspawn": "booted machines (systemd-nspawn: real systemd, cloud-init and sshd)",
    "process": "process machines (an sshd and the node agent in namespaces; user-data is not executed, nothing is "
    "mounted, no packages and scripts)",
    "none": "no machines (instances are only written down)",
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A driver that works here, and one sentence that says which it is and why it was chosen."""

    driver: MachineDriver
    sentence: str


def choose(kind: MachineKind, *, root: Path, cache: Path) -> Choice:
    """The driver asked for, or for "auto" the best that works; MachineError if none does."""
    if kind == "none":
        return Choice(driver=RecordsDriver(), sentence=f"{_WHAT['none']}, as asked")
    nspawn = NspawnDriver(root=root, cache=cache)
    process = ProcessDriver(root=root)
    if kind == "auto":
        return first_usable((nspawn, process))
    driver: MachineDriver = nspawn if kind == "nspawn" else process
    problem = driver.unusable()
    if problem is not None:
        raise MachineError(f"{_WHAT[kind].split(' (')[0]} do not work here: {problem}")
    return Choice(driver=driver, sentence=f"{_WHAT[kind]}, as asked")


def first_usable(drivers: Sequence[MachineDriver]) -> Choice:
    """The first driver that works here; the sentence says what was wrong with those before it."""
    problems: list[str] = []
    for driver in drivers:
        problem = driver.unusable()
        if problem is None:
            why = f" because {'; '.join(problems)}" if problems else ", the best that works here"
            return Choice(driver=driver, sentence=f"{_WHAT[driver.name]}{why}")
        problems.append(f"{driver.name}: {problem}")
    message = f"no machines can be made here: {'; '.join(problems)}"
    raise MachineError(f"{message}; with machines: none in rehearsal.yaml they are only written down")
