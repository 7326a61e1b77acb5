"""A submitted workflow on fake nodes: what is started, in which order, started again, stopped and waited for."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any  # JSON

import pytest
from clusterctl.on_node.job import judge
from clusterctl.output import Output
from clusterctl.workflows.course import COMPLETED, plans_json, plans_of
from clusterctl.workflows.placement import capacities_of
from clusterctl.workflows.request import cancel_workflow
from clusterctl.workflows.submission import Submission
from clusterctl.workflows.submit import watched
from clusterctl.workflows.task_job import Run
from clusterctl_infra.errors import ClusterctlError

from tests.unit.cli.workflows.fake_workflow_nodes import FakeNodes
from tests.unit.cli.workflows.workflow_files import read

GROUPS = """\
workflow:
  name: w
  timeout: {{queue}}
  resources: {default: {gpu: 8}}
  groups:
  - name: g
    ignoreNonleadStatus: {{ignores}}
    tasks:
    - {name: a, lead: true, image: i, command: [a], exitActions: {RESTART: 75, RESCHEDULE: 76}}
    - {name: b, image: i, command: [b], exitActions: {RESTART: 75, RESCHEDULE: 76}}
  - name: later
    tasks:
    - {name: c, image: i, command: [c], inputs: [{task: a}]}
default-values: {ignores: true, queue: "{}"}
"""


def submission(nodes: FakeNodes, *words: str, has_containers: bool = False) -> Submission:
    loaded = read(GROUPS, *words)
    plans = plans_of(loaded.workflow)
    run = Run(
        id="w",
        uuid="u",
        loaded=loaded,
        inventory=nodes.inventory,
        share="/shared",
        plans=plans_json(plans),
        has_containers=has_containers,
        by="ada",
    )
    notes: list[str] = []
    return Submission(
        logins={},
        run=run,
        plans=plans,
        nodes=nodes,  # type: ignore[arg-type]  # a fake with the only method that is called
        capacities=capacities_of(nodes.inventory, None),
        secrets_of={"a": {}, "b": {}, "c": {}},
        tell=notes.append,
        now_s=lambda: nodes.now_s,
        sleep=nodes.sleep,
    )


class LyingNodes(FakeNodes):
    """Node 0 also says of every job that it has failed there."""

    def _answer(self, slot: int, verb: str, arguments: Sequence[str], stdin: IO[bytes] | None) -> Mapping[str, Any]:
        answer = super()._answer(slot, verb, arguments, stdin)
        if slot or verb != "list":
            return answer
        outcome = {"state": judge.FAILED, "exit_code": 9, "cause": "", "failure": None}
        state = {"state": judge.FAILED, "since_s": self.now_s, "outcome": outcome}
        members = [{"slot": 0, "name": "train-0", "nproc": 1}]
        others = [job for job in self._jobs.values() if job["slot"]]
        return {
            "jobs": [*answer["jobs"], *({"spec": {**j["spec"], "members": members}, "state": state} for j in others)]
        }


def test_a_node_says_nothing_of_the_tasks_of_another() -> None:
    nodes = LyingNodes(2, lambda job, age_s: 0 if age_s > 5 else None)
    under_way = submission(nodes)
    assert under_way.watch() == 0
    assert under_way.state == COMPLETED
    assert under_way.placed["b"].node.slot == 1
    assert under_way.courses["b"].state == judge.SUCCEEDED


def test_a_group_starts_with_its_lead_and_the_next_one_when_it_has_completed() -> None:
    nodes = FakeNodes(2, lambda job, age_s: 0 if age_s >= 3 else None)
    own = submission(nodes)
    assert own.watch() == 0
    assert nodes.started() == ["w-0", "w-1", "w-2"]
    assert own.state == "completed"
    assert [own.placed[task].node.slot for task in "abc"] == [0, 1, 0]


def test_images_are_on_all_nodes_of_a_group_before_its_first_task_starts() -> None:
    nodes = FakeNodes(2, lambda job, age_s: 0 if age_s >= 3 else None)
    own = submission(nodes, has_containers=True)
    assert own.watch() == 0
    pulls = [verb for verb, _ in nodes.asked[: nodes.asked.index(("start", "w-0"))] if verb == "pull"]
    assert pulls == ["pull", "pull"]  # the group's, and the first task's own look
    assert nodes.slots_asked[0] == [0, 1]


def test_images_are_fetched_with_their_registrys_password() -> None:
    nodes = FakeNodes(2, lambda job, age_s: 0 if age_s >= 3 else None)
    own = submission(nodes, has_containers=True)
    own.logins = {"docker.io": "ada:pass"}
    assert own.watch() == 0
    assert set(nodes.logins) == {"ada:pass"}


def test_a_task_that_a_reclaim_ended_starts_again_on_another_node() -> None:
    """Of three nodes AWS takes the first one back while its task runs; the task has asked for another node."""
    nodes = FakeNodes(3, lambda job, age_s: 76 if job == "w-0" and age_s >= 3 else 0 if age_s >= 6 else None)
    own = submission(nodes, "ignores=false")

    def sleep(seconds: float) -> None:
        nodes.sleep(seconds)
        nodes.reclaimed = {0}

    own.sleep = sleep
    assert own.watch() == 0
    assert {own.placed[task].node.slot for task in "ab"} == {1, 2}
    assert own.placed["c"].node.slot != 0


def test_others_are_stopped_some_seconds_after_their_lead_has_completed() -> None:
    nodes = FakeNodes(3, lambda job, age_s: 0 if age_s >= 3 and job != "w-1" else None)
    assert submission(nodes).watch() == 0
    assert [job for verb, job in nodes.asked if verb == "cancel"] == ["w-1"]


def test_one_that_fails_stops_its_group_and_nothing_that_waits_for_it_starts() -> None:
    nodes = FakeNodes(2, lambda job, age_s: 7 if job == "w-1" and age_s >= 2 else None)
    own = submission(nodes, "ignores=false")
    assert own.watch() == 7
    assert nodes.started() == ["w-0", "w-1"]
    assert [job for verb, job in nodes.asked if verb == "cancel"] == ["w-0"]


@pytest.mark.parametrize(
    ("ignores", "code", "started"),
    [
        ("true", 75, ["w-0", "w-1", "w-1-r2", "w-2"]),
        ("false", 75, ["w-0", "w-1", "w-1-r2", "w-2"]),
        ("true", 76, ["w-0", "w-1", "w-1-r2", "w-2"]),
        ("false", 76, ["w-0", "w-1", "w-0-r2", "w-1-r2", "w-2"]),
    ],
)
def test_a_task_that_asks_is_started_again_alone_or_with_its_group(ignores: str, code: int, started: list[str]) -> None:
    def ends(job: str, age_s: float) -> int | None:
        if job == "w-1":
            return code if age_s >= 2 else None
        return 0 if age_s >= 6 else None

    nodes = FakeNodes(2, ends)
    own = submission(nodes, f"ignores={ignores}")
    assert own.watch() == 0
    assert nodes.started() == started


def test_a_task_that_asks_for_ever_is_started_ten_times() -> None:
    nodes = FakeNodes(2, lambda job, age_s: 75 if job.startswith("w-0") else None)
    assert submission(nodes).watch() == 75
    assert len([job for job in nodes.started() if job.startswith("w-0")]) == 10


def test_nodes_that_others_have_are_waited_for_as_long_as_the_file_says() -> None:
    nodes = FakeNodes(2, lambda job, age_s: 0)
    nodes.held = {1}
    with pytest.raises(ClusterctlError, match="group g cannot start: other jobs have its nodes"):
        submission(nodes).watch()
    assert nodes.started() == []
    before_s = nodes.now_s
    with pytest.raises(ClusterctlError, match="group g cannot start: other jobs have its nodes"):
        submission(nodes, "queue={queue_timeout: 30s}").watch()
    assert 29 <= nodes.now_s - before_s <= 32


@pytest.mark.parametrize("ignores", ["true", "false"])
def test_a_group_that_is_moved_waits_anew_for_as_long_as_the_file_says(ignores: str) -> None:
    """It waits 20 s for its first start, runs, and 20 s again for the start on other nodes; the file allows 30 s."""
    nodes = FakeNodes(2, lambda job, age_s: 76 if job in ("w-0", "w-1") and age_s >= 2 else 0 if age_s >= 6 else None)
    own = submission(nodes, f"ignores={ignores}", "queue={queue_timeout: 30s}")
    began_s = nodes.now_s
    nodes.held = {0, 1}

    def sleep(seconds: float) -> None:
        nodes.sleep(seconds)
        if nodes.now_s - began_s in (20.0, 50.0):
            nodes.held = set()
        elif nodes.started() == ["w-0", "w-1"] and nodes.now_s - began_s < 50.0:
            nodes.held = {0, 1}

    own.sleep = sleep
    assert own.watch() == 0
    assert nodes.now_s - began_s > 50
    assert nodes.started() == ["w-0", "w-1", "w-0-r2", "w-1-r2", "w-2"]


def test_a_group_whose_stopped_tasks_find_no_room_yet_is_not_taken_for_a_failed_one() -> None:
    """Neither by `submit` nor by `show` at another terminal."""
    nodes = FakeNodes(2, lambda job, age_s: 76 if job == "w-1" and age_s >= 2 else 0 if age_s >= 6 else None)
    own = submission(nodes, "ignores=false", "queue={queue_timeout: 30s}")
    began_s, shown = nodes.now_s, set()

    def sleep(seconds: float) -> None:
        nodes.sleep(seconds)
        nodes.held = {0, 1} if nodes.now_s - began_s < 15 else set()
        shown.add(nodes.shown())

    own.sleep = sleep
    assert own.watch() == 0
    assert nodes.started() == ["w-0", "w-1", "w-0-r2", "w-1-r2", "w-2"]
    assert shown == {"running", "waiting", "completed"}


def moving(seen: set[str], after_s: float, do: Callable[[Submission], None]) -> tuple[FakeNodes, Submission]:
    """A group that is to move and finds no room; `do` is called `after_s` later. `seen` gets each state shown."""
    nodes = FakeNodes(2, lambda job, age_s: 76 if job == "w-1" and age_s >= 2 else None)
    own = submission(nodes, "ignores=false", "queue={queue_timeout: 30s}")
    stopped_s: list[float] = []

    def sleep(seconds: float) -> None:
        nodes.sleep(seconds)
        seen.add(nodes.shown())
        if ("cancel", "w-0") in nodes.asked:
            nodes.held = {0, 1}
            stopped_s.append(nodes.now_s)
            if nodes.now_s - stopped_s[0] >= after_s:
                do(own)

    own.sleep = sleep
    return nodes, own


@pytest.mark.parametrize("after_s", [0.0, 5.0])
def test_after_a_cancel_while_a_group_is_to_move_it_is_shown_as_cancelled(after_s: float) -> None:
    seen: set[str] = set()
    nodes, own = moving(seen, after_s, Submission.cancel)
    assert own.watch() == 130
    assert nodes.started() == ["w-0", "w-1"]
    assert seen == {"running"}
    assert nodes.shown() == "cancelled"


def test_a_group_that_is_given_up_while_it_is_to_move_is_not_shown_as_running() -> None:
    seen: set[str] = set()
    nodes, own = moving(seen, 0.0, lambda own: None)
    with pytest.raises(ClusterctlError, match="group g cannot start: other jobs have its nodes"):
        own.watch()
    assert seen == {"running"}
    assert nodes.shown() == "cancelled"


class Killed(BaseException):
    """What ends `submit` at once."""


def end_at_once(own: Submission) -> None:
    raise Killed


def test_a_workflow_whose_submit_was_killed_while_a_group_was_to_move_can_be_cancelled() -> None:
    nodes, own = moving(set(), 5.0, end_at_once)
    with pytest.raises(Killed):
        own.watch()
    assert nodes.shown() == "running", "as far as the nodes know it is about to be started again"
    cancel_workflow(nodes.known(), nodes, pytest.fail)  # type: ignore[arg-type]  # a fake with what is called
    assert nodes.shown() == "cancelled"


def test_what_is_cancelled_ends_with_130_and_starts_nothing_more() -> None:
    nodes = FakeNodes(2, lambda job, age_s: None)
    own = submission(nodes)

    def sleep(seconds: float) -> None:
        nodes.sleep(seconds)
        own.cancel()

    own.sleep = sleep
    assert own.watch() == 130
    assert nodes.started() == ["w-0", "w-1"]
    assert own.state == "cancelled"


class Terminal(io.StringIO):
    """Somebody at a terminal, who presses Ctrl-C at a question."""

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as that of StringIO
        raise KeyboardInterrupt


def test_a_second_interrupt_leaves_and_tells_how_to_look_at_what_goes_on() -> None:
    nodes = FakeNodes(2, lambda job, age_s: None)
    own = submission(nodes)

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    own.sleep = interrupt
    stderr = io.BytesIO()
    output = Output(stdout=io.BytesIO(), stderr=stderr, stderr_is_terminal=True, stdin=Terminal())
    assert watched(own, output) == 0
    assert stderr.getvalue().decode().endswith("w: running tasks go on\n  next: clusterctl workflow show w\n")
    assert "cancel" not in [verb for verb, _ in nodes.asked]


def interrupt_again(own: Submission) -> None:
    raise KeyboardInterrupt


def test_a_group_that_is_to_move_is_cancelled_when_its_submit_leaves() -> None:
    """Its tasks are stopped by now, and nobody is left to start them again."""
    nodes, own = moving(set(), 5.0, interrupt_again)
    output = Output(stdout=io.BytesIO(), stderr=io.BytesIO(), stderr_is_terminal=True, stdin=Terminal())
    assert watched(own, output) == 0
    assert nodes.shown() == "cancelled"


def test_a_task_whose_node_no_longer_knows_it_is_lost() -> None:
    nodes = FakeNodes(2, lambda job, age_s: None)
    own = submission(nodes)

    def sleep(seconds: float) -> None:
        nodes.sleep(seconds)
        nodes._jobs.pop("w-0", None)

    own.sleep = sleep
    assert own.watch() == 255
    assert own.courses["a"].state == judge.LOST
