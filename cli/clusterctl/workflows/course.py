"""A workflow's state, and what is to be done next, worked out from the states of its tasks' jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # JSON

from clusterctl.on_node.job import judge
from clusterctl.workflows.model import Workflow
from clusterctl.workflows.order import upstream

COMPLETE, FAIL, RESCHEDULE, RESTART = "COMPLETE", "FAIL", "RESCHEDULE", "RESTART"
MOST_TRIES = 10
"""How many times a task is started at most: one that is started again for ever bills for ever."""
WAITING, RUNNING, COMPLETED, FAILED, CANCELLED = "waiting", "running", "completed", "failed", "cancelled"


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """A task, as it is stored in the specs of its workflow's jobs."""

    name: str
    actions: tuple[tuple[str, int, int], ...]
    """(action, first exit code, last exit code)."""


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """A group, as it is stored in the specs of its workflow's jobs."""

    name: str
    lead: str
    ignores_nonlead: bool
    tasks: tuple[TaskPlan, ...]
    after: tuple[str, ...]
    """The groups that must have completed before it starts."""


@dataclass(frozen=True, kw_only=True)
class TaskCourse:
    """The state of one task: that of its newest job, if it has one."""

    job: str
    tries: int
    state: str
    exit_code: int | None
    is_to_restart: bool = False
    """Whether the job was cancelled in order to start the task again, as all tasks of a group that moves are."""


NOT_STARTED = TaskCourse(job="", tries=0, state=WAITING, exit_code=None)


@dataclass(frozen=True, kw_only=True)
class Step:
    """The state of a group, and what has to be done for it next."""

    state: str
    again: tuple[str, ...] = ()
    """Tasks that are to be started again."""
    is_elsewhere: bool = False
    """Whether those tasks are to start on other nodes."""
    cause: str = ""
    """If the group failed, the task that made it fail."""


def plans_of(workflow: Workflow) -> tuple[GroupPlan, ...]:
    """The workflow's groups, as they are stored in the specs of its jobs."""
    groups = workflow.all_groups()
    after = upstream(groups)
    return tuple(
        GroupPlan(
            name=group.name,
            lead=group.lead.name,
            ignores_nonlead=group.ignore_nonlead_status,
            tasks=tuple(TaskPlan(name=task.name, actions=task.exit_actions) for task in group.tasks),
            after=after[group.name],
        )
        for group in groups
    )


def plans_json(plans: Sequence[GroupPlan]) -> list[dict[str, Any]]:
    """The groups as JSON for a job's spec."""
    return [
        {
            "name": plan.name,
            "lead": plan.lead,
            "ignores_nonlead": plan.ignores_nonlead,
            "tasks": [{"name": task.name, "actions": [list(row) for row in task.actions]} for task in plan.tasks],
            "after": list(plan.after),
        }
        for plan in plans
    ]


def plans_from(rows: Sequence[Mapping[str, Any]]) -> tuple[GroupPlan, ...]:
    """The groups that a job's spec has as JSON. Raises LookupError, TypeError, ValueError if they are malformed."""
    plans = tuple(
        GroupPlan(
            name=str(row["name"]),
            lead=str(row["lead"]),
            ignores_nonlead=bool(row["ignores_nonlead"]),
            tasks=tuple(
                TaskPlan(
                    name=str(task["name"]),
                    actions=tuple((str(action), int(first), int(last)) for action, first, last in task["actions"]),
                )
                for task in row["tasks"]
            ),
            after=tuple(str(name) for name in row["after"]),
        )
        for row in rows
    )
    names = {plan.name for plan in plans}
    for plan in plans:
        if plan.lead not in {task.name for task in plan.tasks} or not names.issuperset(plan.after):
            raise ValueError(f"group {plan.name}: its lead task, or a group that it waits for, is missing")
    return plans


def action_of(task: TaskPlan, course: TaskCourse) -> str | None:
    """What the task's end means: COMPLETE, FAIL, RESCHEDULE or RESTART.

    None before it begins, while it runs, and if its job was cancelled in order to start it again.
    """
    if course.tries == 0 or course.state not in judge.FINAL or course.is_to_restart:
        return None
    # A task that was cancelled, ran out of time or was lost is never started again.
    if course.state not in (judge.SUCCEEDED, judge.FAILED):
        return FAIL
    code = course.exit_code or 0
    action = next((action for action, first, last in task.actions if first <= code <= last), None)
    if action is None:
        return COMPLETE if code == 0 else FAIL
    return FAIL if action in (RESCHEDULE, RESTART) and course.tries >= MOST_TRIES else action


def group_step(plan: GroupPlan, courses: Mapping[str, TaskCourse]) -> Step:
    """The group's state, and which of its tasks are to be started again. `courses`: task → its state."""
    actions = {task.name: action_of(task, courses.get(task.name, NOT_STARTED)) for task in plan.tasks}
    judged = {plan.lead: actions[plan.lead]} if plan.ignores_nonlead else actions
    failed = [name for name, action in judged.items() if action == FAIL]
    if failed:
        # The cause is a task that failed by itself, not one that was stopped because of it.
        own = [name for name in failed if courses[name].state != judge.CANCELLED]
        return Step(state=FAILED, cause=(own or failed)[0])
    if actions[plan.lead] == COMPLETE and all(action == COMPLETE for action in judged.values()):
        return Step(state=COMPLETED)
    again = tuple(name for name, action in actions.items() if action in (RESCHEDULE, RESTART))
    is_moved = any(actions[name] == RESCHEDULE for name in again)
    if again and is_moved and not plan.ignores_nonlead:
        return Step(state=RUNNING, again=tuple(task.name for task in plan.tasks), is_elsewhere=True)
    if again:
        # The other tasks of a group have been told this task's node, so it stays there.
        return Step(state=RUNNING, again=again, is_elsewhere=is_moved and len(plan.tasks) == 1)
    has_begun = any(courses.get(task.name, NOT_STARTED).tries for task in plan.tasks)
    return Step(state=RUNNING if has_begun else WAITING)


def ready_groups(plans: Sequence[GroupPlan], states: Mapping[str, str]) -> list[GroupPlan]:
    """The groups that have not started and whose preceding groups have all completed."""
    return [
        plan for plan in plans if states[plan.name] == WAITING and all(states[name] == COMPLETED for name in plan.after)
    ]


def workflow_state(plans: Sequence[GroupPlan], courses: Mapping[str, TaskCourse]) -> str:
    """The state of the whole workflow, as one word."""
    steps = [group_step(plan, courses) for plan in plans]
    if all(step.state == COMPLETED for step in steps):
        return COMPLETED
    if any(step.state == RUNNING for step in steps):
        return RUNNING
    failed = [courses[step.cause] for step in steps if step.state == FAILED]
    if failed:
        return CANCELLED if all(course.state == judge.CANCELLED for course in failed) else FAILED
    return WAITING
