"""How a workflow goes, and what is to be done next, from how its tasks' jobs go. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # JSON

from clusterctl.on_node.job import judge
from clusterctl.workflows.model import Workflow
from clusterctl.workflows.order import upstream

COMPLETE, FAIL, RESCHEDULE, RESTART = "COMPLETE", "FAIL", "RESCHEDULE", "RESTART"
MOST_TRIES = 10
"""Of one task: one that asks to be started again for ever bills for ever."""
WAITING, RUNNING, COMPLETED, FAILED, CANCELLED = "waiting", "running", "completed", "failed", "cancelled"


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """A task as its workflow's jobs remember it."""

    name: str
    actions: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """A group as its workflow's jobs remember it."""

    name: str
    lead: str
    ignores_nonlead: bool
    tasks: tuple[TaskPlan, ...]
    after: tuple[str, ...]
    """The groups that must have completed before."""


@dataclass(frozen=True, kw_only=True)
class TaskCourse:
    """How one task goes: its newest job, if any."""

    job: str
    tries: int
    state: str
    exit_code: int | None


NOT_STARTED = TaskCourse(job="", tries=0, state=WAITING, exit_code=None)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a group's course asks for."""

    state: str
    again: tuple[str, ...] = ()
    """Tasks that are to be started again."""
    is_elsewhere: bool = False
    """Whether they want another node."""
    cause: str = ""
    """The task that ended a group that failed."""


def plans_of(workflow: Workflow) -> tuple[GroupPlan, ...]:
    """What the jobs of a workflow remember of it."""
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
    """For a job's spec."""
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
    """From a job's spec. Raises LookupError, TypeError, ValueError for what is none."""
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
    """What the task's end means; None while it goes on, or before it began."""
    if course.tries == 0 or course.state not in judge.FINAL:
        return None
    # Whoever cancels, and a clock, do not ask for the task to be started again.
    if course.state not in (judge.SUCCEEDED, judge.FAILED):
        return FAIL
    code = course.exit_code or 0
    action = next((action for action, first, last in task.actions if first <= code <= last), None)
    if action is None:
        return COMPLETE if code == 0 else FAIL
    return FAIL if action in (RESCHEDULE, RESTART) and course.tries >= MOST_TRIES else action


def group_step(plan: GroupPlan, courses: Mapping[str, TaskCourse]) -> Step:
    """What the group is at, and which of its tasks are to be started again."""
    actions = {task.name: action_of(task, courses.get(task.name, NOT_STARTED)) for task in plan.tasks}
    judged = {plan.lead: actions[plan.lead]} if plan.ignores_nonlead else actions
    failed = [name for name, action in judged.items() if action == FAIL]
    if failed:
        # The task that failed by itself is the cause, not those that were stopped for it.
        own = [name for name in failed if courses[name].state != judge.CANCELLED]
        return Step(state=FAILED, cause=(own or failed)[0])
    if actions[plan.lead] == COMPLETE and all(action == COMPLETE for action in judged.values()):
        return Step(state=COMPLETED)
    again = tuple(name for name, action in actions.items() if action in (RESCHEDULE, RESTART))
    is_moved = any(actions[name] == RESCHEDULE for name in again)
    if again and is_moved and not plan.ignores_nonlead:
        return Step(state=RUNNING, again=tuple(task.name for task in plan.tasks), is_elsewhere=True)
    if again:
        # The others of a group have been told where this task is: it stays there.
        return Step(state=RUNNING, again=again, is_elsewhere=is_moved and len(plan.tasks) == 1)
    has_begun = any(courses.get(task.name, NOT_STARTED).tries for task in plan.tasks)
    return Step(state=RUNNING if has_begun else WAITING)


def ready_groups(plans: Sequence[GroupPlan], states: Mapping[str, str]) -> list[GroupPlan]:
    """The groups that wait for nothing any more."""
    return [
        plan for plan in plans if states[plan.name] == WAITING and all(states[name] == COMPLETED for name in plan.after)
    ]


def workflow_state(plans: Sequence[GroupPlan], courses: Mapping[str, TaskCourse]) -> str:
    """One word for the whole workflow."""
    steps = [group_step(plan, courses) for plan in plans]
    if all(step.state == COMPLETED for step in steps):
        return COMPLETED
    if any(step.state == RUNNING for step in steps):
        return RUNNING
    failed = [courses[step.cause] for step in steps if step.state == FAILED]
    if failed:
        return CANCELLED if all(course.state == judge.CANCELLED for course in failed) else FAILED
    return WAITING
