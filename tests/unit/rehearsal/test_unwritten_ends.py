"""What the region could not begin or write down for a moment, such as on a full disk, it does when it can again."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Mapping
from typing import Any  # answers

import pytest
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.schedules import Schedules
from clusterctl_rehearsal.region.types.deadline import ALARM, SCHEDULE
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.states.ended_executions import ExecutionRow
from clusterctl_rehearsal.states.executions import Executions
from clusterctl_rehearsal.states.failure import ExecutionFailed

from tests.unit.rehearsal.guarded_cluster import AT, DEADLINE, guarded
from tests.unit.rehearsal.small_region import SmallRegion


class Late:
    """A region whose cluster's deadline has come; its executions run when the test says."""

    def __init__(self, world: SmallRegion) -> None:
        self.world = world
        self.machine = guarded(world)
        self.node = world.node(0)
        self.held: list[Callable[[], None]] = []
        self.begin: Callable[[Callable[[], None]], None] = self.held.append
        self.after: Callable[[ExecutionRow], None] = lambda row: None
        world.now = DEADLINE + 60.0
        self.executions = Executions(
            file=world.folder / "executions.jsonl",
            calls=lambda region: world.ec2,
            after=self._executed,
            clock=lambda: world.now,
            pause=lambda seconds: None,
            begin=self._begun,
        )
        self.schedules = Schedules(region=world.region, executions=self.executions)

    def _executed(self, row: ExecutionRow) -> None:
        self.after(row)

    def _begun(self, run: Callable[[], None]) -> None:
        self.begin(run)

    def fire(self) -> int:
        """How many executions the schedules start."""
        before = len(self.held)
        self.schedules.fire_due()
        return len(self.held) - before

    def run(self) -> None:
        """Runs the executions that are held."""
        while self.held:
            self.held.pop()()

    def schedule(self) -> Record:
        (row,) = self.world.store.live(SCHEDULE)
        return row

    def is_done(self) -> bool:
        """Whether the deadline is done: noted as fired, tried no more, and its machine gone."""
        is_gone = self.node.id not in {row.id for row in self.world.store.live(INSTANCE)}
        return is_gone and self.schedule().facts.get("fired") == AT and self.fire() == 0


@pytest.fixture
def late(world: SmallRegion) -> Late:
    return Late(world)


def full(row: ExecutionRow) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_deadline_is_tried_again_in_the_same_region_once_its_end_can_be_written(late: Late) -> None:
    file = late.world.folder / "executions.jsonl"
    file.mkdir()  # as a disk that takes nothing
    assert (late.fire(), late.fire()) == (1, 0)
    with pytest.raises(IsADirectoryError):
        late.run()
    file.rmdir()
    assert (late.fire(), late.fire()) == (1, 0)
    late.run()
    assert late.is_done()


def test_a_deadline_whose_alarm_cannot_be_turned_on_is_tried_again(late: Late) -> None:
    late.after = full
    late.fire()
    with pytest.raises(OSError, match="No space left"):
        late.run()
    late.after = lambda row: None
    assert late.fire() == 1
    late.run()
    assert late.is_done()


def test_a_deadline_that_cannot_be_noted_as_fired_is_tried_again(late: Late) -> None:
    late.fire()
    folder = late.world.folder / "store"
    taken = next(path for path in folder.iterdir() if path.name.startswith("Schedule."))
    blocked = taken.with_name(f"{taken.name}.new")
    blocked.mkdir()
    with pytest.raises(IsADirectoryError):
        late.run()
    blocked.rmdir()
    assert late.fire() == 1
    late.run()
    assert late.is_done()


def no_thread(run: Callable[[], None]) -> None:
    raise RuntimeError("can't start new thread")


def test_an_execution_that_cannot_begin_is_none_and_its_deadline_is_tried_again(late: Late) -> None:
    late.begin = no_thread
    with pytest.raises(RuntimeError, match="new thread"):
        late.fire()
    assert late.executions.of_machine(late.machine.id) == ()
    late.begin = late.held.append
    assert late.fire() == 1
    late.run()
    assert late.is_done()


def test_a_name_whose_execution_could_not_begin_is_free(late: Late) -> None:
    late.begin = no_thread
    for _ in range(2):
        with pytest.raises(RuntimeError, match="new thread"):
            late.executions.start(late.machine, "{}", name="once")


def test_an_alarm_without_dimensions_breaks_no_deadline(world: SmallRegion) -> None:
    guarded(world)
    world.make(ALARM, name="all", namespace="AWS/States", metricName="ExecutionsFailed", treatMissingData="ignore")

    def refusing(action: str, parameters: Mapping[str, Any]) -> Any:
        raise ExecutionFailed("States.Runtime", "nothing works")

    world.ec2 = refusing
    world.now = DEADLINE + 60.0
    Schedules(region=world.region, executions=world.executions).fire_due()
    (row,) = world.store.live(SCHEDULE)
    assert row.facts["fired"] == AT


class FullLog(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failure_that_the_log_does_not_take_is_one_all_the_same(late: Late, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(action: str, parameters: Mapping[str, Any]) -> Any:
        raise ExecutionFailed("States.Runtime", "nothing works")

    late.world.ec2 = refusing
    late.fire()
    monkeypatch.setattr(sys, "stderr", FullLog())
    late.run()
    assert [row.status for row in late.executions.of_machine(late.machine.id)] == ["FAILED"]
    assert late.schedule().facts["fired"] == AT
