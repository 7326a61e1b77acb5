"""What becomes of a workflow: each group's next step, which groups are ready, and the state of the whole."""

from __future__ import annotations

import json

import pytest
from clusterctl.on_node.job import judge
from clusterctl.workflows.course import (
    COMPLETED,
    FAILED,
    MOST_TRIES,
    RUNNING,
    WAITING,
    GroupPlan,
    Step,
    TaskCourse,
    TaskPlan,
    group_step,
    plans_from,
    plans_json,
    plans_of,
    ready_groups,
    workflow_state,
)

from tests.unit.cli.workflows.workflow_files import SCALED, SMALL, read

ACTIONS = (("COMPLETE", 1, 1), ("RESTART", 10, 19), ("RESCHEDULE", 20, 29))


def plan(*, ignores: bool = True, names: str = "ab", after: tuple[str, ...] = ()) -> GroupPlan:
    tasks = tuple(TaskPlan(name=name, actions=ACTIONS) for name in names)
    return GroupPlan(name="g", lead=names[0], ignores_nonlead=ignores, tasks=tasks, after=after)


def course(state: str, code: int | None = None, tries: int = 1, *, is_to_restart: bool = False) -> TaskCourse:
    return TaskCourse(job="j", tries=tries, state=state, exit_code=code, is_to_restart=is_to_restart)


RUNS = course(judge.RUNNING)
DONE = course(judge.SUCCEEDED, 0)
BROKEN = course(judge.FAILED, 3)
STOPPED = course(judge.CANCELLED, 130)
TO_RESTART = course(judge.CANCELLED, 130, is_to_restart=True)
FAILED_MEANWHILE = course(judge.FAILED, 3, is_to_restart=True)
"""It had failed by itself before it was asked to stop."""


@pytest.mark.parametrize(
    ("ignores", "lead", "other", "expected"),
    [
        (True, RUNS, RUNS, Step(state=RUNNING)),
        (True, RUNS, BROKEN, Step(state=RUNNING)),
        (False, RUNS, BROKEN, Step(state=FAILED, cause="b")),
        (True, DONE, RUNS, Step(state=COMPLETED)),
        (False, DONE, RUNS, Step(state=RUNNING)),
        (False, DONE, DONE, Step(state=COMPLETED)),
        (True, BROKEN, RUNS, Step(state=FAILED, cause="a")),
        (False, STOPPED, BROKEN, Step(state=FAILED, cause="b")),
        (True, course(judge.FAILED, 1), RUNS, Step(state=COMPLETED)),
        (True, course(judge.FAILED, 10), RUNS, Step(state=RUNNING, again=("a",))),
        (True, RUNS, course(judge.FAILED, 29), Step(state=RUNNING, again=("b",))),
        (False, RUNS, course(judge.FAILED, 12), Step(state=RUNNING, again=("b",))),
        (False, RUNS, course(judge.FAILED, 20), Step(state=RUNNING, again=("a", "b"), is_elsewhere=True)),
        (False, STOPPED, course(judge.FAILED, 20), Step(state=FAILED, cause="a")),
        (False, TO_RESTART, course(judge.FAILED, 20), Step(state=RUNNING, again=("a", "b"), is_elsewhere=True)),
        (False, FAILED_MEANWHILE, course(judge.FAILED, 20), Step(state=RUNNING, again=("a", "b"), is_elsewhere=True)),
        (False, TO_RESTART, course(judge.STARTING, tries=2), Step(state=RUNNING)),
        (True, course(judge.FAILED, 10, tries=MOST_TRIES), RUNS, Step(state=FAILED, cause="a")),
        (True, course(judge.LOST, 255), RUNS, Step(state=FAILED, cause="a")),
        (True, course(judge.TIMED_OUT, 124), RUNS, Step(state=FAILED, cause="a")),
    ],
)
def test_a_groups_step_follows_from_its_lead_and_where_it_says_so_from_all(
    ignores: bool, lead: TaskCourse, other: TaskCourse, expected: Step
) -> None:
    assert group_step(plan(ignores=ignores), {"a": lead, "b": other}) == expected


def test_a_task_alone_is_started_again_on_another_node() -> None:
    step = group_step(plan(names="a"), {"a": course(judge.FAILED, 20)})
    assert step == Step(state=RUNNING, again=("a",), is_elsewhere=True)


def test_a_group_waits_until_those_before_it_have_completed() -> None:
    first, second = plan(), plan(after=("f",))
    assert group_step(second, {}) == Step(state=WAITING)
    assert ready_groups([second], {"g": WAITING, "f": RUNNING}) == []
    assert ready_groups([second], {"g": WAITING, "f": FAILED}) == []
    assert ready_groups([second], {"g": WAITING, "f": COMPLETED}) == [second]
    assert ready_groups([first], {"g": RUNNING}) == []


@pytest.mark.parametrize(
    ("lead", "expected"), [(RUNS, "running"), (DONE, "completed"), (BROKEN, "failed"), (STOPPED, "cancelled")]
)
def test_the_workflow_is_in_one_state(lead: TaskCourse, expected: str) -> None:
    assert workflow_state([plan(names="a")], {"a": lead}) == expected
    assert workflow_state([plan(names="a")], {}) == "waiting"


@pytest.mark.parametrize("text", [SCALED, SMALL])
def test_what_jobs_remember_of_a_workflow_is_read_back(text: str) -> None:
    plans = plans_of(read(text).workflow)
    assert plans_from(json.loads(json.dumps(plans_json(plans)))) == plans
