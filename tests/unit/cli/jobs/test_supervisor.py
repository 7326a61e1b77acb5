"""How a node follows the coordinator's directives: ranks end neither early nor late, none is left, all is reported."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import judge
from clusterctl.on_node.job.coordination import LOST_AFTER_S, MET_WITHIN_S
from clusterctl.on_node.job.events import read_events
from clusterctl.on_node.job.layout import Layout, read_state
from clusterctl.on_node.job.supervise import DRAIN_S, LAUNCHER_S, MOST_AHEAD_S, Supervisor

from tests.unit.cli.jobs.job_specs import RANK_END, spec

WAIT, STOP = {"do": "wait"}, {"do": "stop"}
START = {"do": "start", "at_s": 0.0}
FINISH = {"do": "finish", "outcome": judge.outcome(judge.SUCCEEDED, "", ())}
WELL = {**RANK_END, "code": 0}
SLOT = 3
"""The slot of the node; its two ranks are 4 and 5."""


class Link:
    """Hears one directive after the other; the last one is the finish, unless the coordinator is silent for long."""

    def __init__(self, course: list[str], *directives: dict[str, Any], silent_s: float = 0.0) -> None:
        self._course = course
        self._coming = list(directives)
        self._silent_s = silent_s
        self.says: dict[str, Any] = {}
        self.sent: list[dict[str, Any]] = []
        self.directive = self._coming.pop(0)

    def start(self) -> None:
        self._course.append("link")

    def say(self, **words: Any) -> None:
        self.says = {**self.says, **words}
        self.sent.append(words)
        if "knows_end" in words:
            self._course.append("knows end")

    def silent_s(self) -> float:
        return self._silent_s

    def wait(self, timeout_s: float) -> None:
        """Takes the next directive; fails the test if the supervisor waits after the last one."""
        self.directive = self._coming.pop(0)


class Ranks:
    """Two ranks; `ends`: how they have ended each time that they are looked at."""

    def __init__(self, course: list[str], ends: Iterable[list[dict[str, Any]]] = ()) -> None:
        self._course = course
        self._ends = list(ends)
        self.is_started = False
        self.carried_out: list[Mapping[str, Any]] = []

    def start(self) -> None:
        self.is_started = True
        self._course.append("start")

    def stop(self, grace_s: float) -> None:
        self._course.append(f"stop within {grace_s:g}")

    def orders(self) -> list[dict[str, Any]]:
        return [{"slot": 1, "argv": ["orted"]}]

    def carry_out(self, orders: Iterable[Mapping[str, Any]]) -> None:
        self.carried_out += orders

    def has_launcher_ended(self) -> bool:
        return False

    def ended(self) -> list[dict[str, Any]]:
        return self._ends.pop(0) if self._ends else []

    def launcher_failure(self) -> dict[str, Any]:
        raise AssertionError("no launcher has ended")

    def wait_for_launcher(self, timeout_s: float) -> None:
        self._course.append(f"launcher within {timeout_s:g}")

    def drain(self, timeout_s: float) -> None:
        self._course.append(f"drain within {timeout_s:g}")


class Node:
    """A supervisor whose link and ranks are fakes; `course` has what was done, in order."""

    def __init__(
        self, root: Path, *directives: dict[str, Any], ends: Iterable[list[dict[str, Any]]] = (), silent_s: float = 0.0
    ) -> None:
        self.layout = Layout(root)
        self.layout.folder("first").mkdir(parents=True)
        self.layout.state("first").parent.mkdir(parents=True, exist_ok=True)
        self.layout.cancel("first").parent.mkdir(parents=True, exist_ok=True)
        self.course: list[str] = []
        self.paused: list[float] = []
        self.heard: list[Any] = []
        self.link = Link(self.course, *directives, silent_s=silent_s)
        self.ranks = Ranks(self.course, ends)
        self.supervisor = Supervisor(
            self.layout,
            spec(grace_s=7.0),
            SLOT,
            link=self.link,
            ranks=self.ranks,
            warn=self._warn,
            kill=self._kill,
            copy=lambda: self.course.append("copy"),
            pause=self.paused.append,
        )

    def _warn(self, heard: Any) -> Any:
        self.heard.append(heard)
        return {"stage": 1}

    def _kill(self) -> list[int]:
        self.course.append("kill")
        return [4711]

    def run(self) -> dict[str, Any]:
        """Runs the supervisor, and gives the state that it leaves."""
        self.supervisor.run()
        return read_state(self.layout, "first")

    def events(self) -> list[str]:
        return [row["event"] for row in read_events(self.layout.events("first"))]


CLEARED = [f"launcher within {LAUNCHER_S:g}", "kill"]
LAST = [f"drain within {DRAIN_S:g}", "copy", "knows end"]


def test_a_job_that_ends_well_is_cleared_drained_copied_and_only_then_told(tmp_path: Path) -> None:
    node = Node(tmp_path, WAIT, START, START, FINISH, ends=[[], [WELL, {**WELL, "rank": 5}]])
    state = node.run()
    assert node.course == ["link", "start", *CLEARED, *LAST]
    assert (state["state"], state["outcome"], state["left"]) == (judge.SUCCEEDED, FINISH["outcome"], [4711])
    assert (state["slot"], state["ranks"], state["attempt"]) == (SLOT, [4, 5], 1)
    assert node.link.sent[0] == {"phase": "ready", "failures": []}
    assert node.link.sent[-1] == {"knows_end": True}
    assert node.events() == ["starting", "running", "rank ended", "rank ended", "succeeded"]


def test_no_rank_is_started_before_the_coordinator_says_so(tmp_path: Path) -> None:
    node = Node(tmp_path, WAIT, WAIT, FINISH)
    node.run()
    assert "start" not in node.course
    assert {words["phase"] for words in node.link.sent if "phase" in words} == {"ready"}


@pytest.mark.parametrize(("ahead_s", "most_s"), [(-5.0, 0.0), (1.0, 1.0), (3600.0, MOST_AHEAD_S)])
def test_the_start_is_waited_for_but_not_by_a_clock_that_is_wrong(
    tmp_path: Path, ahead_s: float, most_s: float
) -> None:
    node = Node(tmp_path, {"do": "start", "at_s": time.time() + ahead_s}, FINISH)
    node.run()
    (paused_s,) = node.paused
    assert most_s - 0.9 <= paused_s <= most_s
    assert node.link.sent[1]["phase"] == "running"


@pytest.mark.parametrize(
    ("ended", "phase", "failures"),
    [
        ([], "running", []),
        ([WELL], "running", []),
        ([WELL, {**WELL, "rank": 5}], "ended", []),
        # One has failed: the other may still run, so the node waits to be told to stop.
        ([{**RANK_END, "code": 7}], "running", [4]),
        ([WELL, {**RANK_END, "rank": 5}], "running", [5]),
        ([{**RANK_END, "code": None, "signal": 9}], "running", [4]),
    ],
)
def test_a_node_says_that_it_has_ended_when_all_its_ranks_have_and_well(
    tmp_path: Path, ended: list[dict[str, Any]], phase: str, failures: list[int]
) -> None:
    node = Node(tmp_path, START, FINISH, ends=[ended])
    node.run()
    report = next(words for words in node.link.sent if "orders" in words)
    assert report["phase"] == phase
    assert [(row["rank"], row["slot"], row["name"]) for row in report["failures"]] == [
        (rank, SLOT, "train-3") for rank in failures
    ]
    assert report["orders"] == node.ranks.orders()


def test_a_rank_s_end_is_written_down_once_with_its_code(tmp_path: Path) -> None:
    failed = {**RANK_END, "code": 7}
    node = Node(tmp_path, START, START, START, FINISH, ends=[[failed], [failed], [failed]])
    node.run()
    rows = [row for row in read_events(node.layout.events("first")) if row["event"] == "rank ended"]
    assert [(row["rank"], row["code"], row["signal"]) for row in rows] == [(4, 7, None)]


def test_who_is_told_to_stop_stops_once_with_the_grace_and_leaves_nothing(tmp_path: Path) -> None:
    outcome = judge.outcome(judge.CANCELLED, "ada cancelled it", ())
    node = Node(tmp_path, START, STOP, STOP, STOP, {"do": "finish", "outcome": outcome}, ends=[[], [WELL]])
    state = node.run()
    assert node.course == ["link", "start", "stop within 7", *CLEARED, *CLEARED, *LAST]
    assert node.link.says["phase"] == "ended"
    assert node.events()[-2:] == ["stopping", "cancelled"]
    assert (state["state"], state["outcome"]["cause"]) == (judge.CANCELLED, "ada cancelled it")
    why = [row.get("why") for row in read_events(node.layout.events("first"))]
    assert why == [None, None, None, "ada cancelled it"]


def test_ranks_that_never_started_need_no_grace_to_be_stopped(tmp_path: Path) -> None:
    node = Node(tmp_path, STOP, {"do": "finish", "outcome": judge.outcome(judge.CANCELLED, "", ())})
    node.run()
    assert node.course == ["link", *CLEARED, *LAST]
    assert node.link.says["phase"] == "ended"
    assert "stopping" not in node.events()


@pytest.mark.parametrize(
    ("directives", "silent_s", "is_cancelled", "is_lost"),
    [
        ([WAIT], LOST_AFTER_S + 1, False, False),  # others may still be on their way
        ([WAIT], MET_WITHIN_S, False, False),
        ([WAIT], MET_WITHIN_S + 1, False, True),
        ([WAIT], LOST_AFTER_S + 1, True, True),
        ([START, START], LOST_AFTER_S, False, False),
        ([START, START], LOST_AFTER_S + 1, False, True),
    ],
)
def test_a_node_whose_coordinator_is_silent_for_too_long_ends_its_ranks(
    tmp_path: Path, directives: list[dict[str, Any]], silent_s: float, is_cancelled: bool, is_lost: bool
) -> None:
    node = Node(tmp_path, *directives, FINISH, silent_s=silent_s)
    if is_cancelled:
        node.layout.cancel("first").touch()
    state = node.run()
    was_started = "start" in node.course
    assert ("stop within 7" in node.course) == (is_lost and was_started)
    assert state["state"] == (judge.LOST if is_lost else judge.SUCCEEDED)
    if is_lost:
        cause = "the coordinator, Node 1 (train-1), does not answer any more"
        assert (state["outcome"]["cause"], state["outcome"]["exit_code"]) == (cause, 255)


@pytest.mark.parametrize("is_disk_full", [False, True])
def test_a_cancelled_job_is_said_to_be_cancelled_until_the_coordinator_says_how_it_ends(
    tmp_path: Path, is_disk_full: bool
) -> None:
    node = Node(tmp_path, START, START, FINISH)
    mark = node.layout.spare_cancel("first") if is_disk_full else node.layout.cancel("first")
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    node.run()
    assert node.link.says["is_cancelled"] is True
    other = Node(tmp_path / "other", START, START, FINISH)
    other.run()
    assert "is_cancelled" not in other.link.says


def test_warnings_and_mpirun_s_orders_are_passed_on_while_ranks_run_and_not_after(tmp_path: Path) -> None:
    orders = [{"slot": SLOT, "argv": ["orted"]}]
    early, late = {**WAIT, "warning": "too early"}, {**WAIT, "warning": "too late", "orders": orders}
    started: dict[str, Any] = {**START, "warning": "soon", "orders": orders}
    node = Node(tmp_path, early, started, STOP, late, FINISH)
    node.run()
    assert (node.heard, node.ranks.carried_out) == (["soon"], orders)
    assert node.link.says["warning"] == {"stage": 1}
