"""Workflows, put together from the jobs of their tasks: the same from any computer that knows the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterctl_infra.errors import NothingMatched
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.job_state import JobState, job_states
from clusterctl.jobs.known import LIST_S, KnownJobs
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.workflows.course import (
    NOT_STARTED,
    GroupPlan,
    TaskCourse,
    group_step,
    plans_from,
    workflow_state,
)

HEADER = ("workflow", "state", "since", "tasks")


@dataclass(frozen=True, kw_only=True)
class KnownWorkflow:
    """A workflow and the newest job of each of its tasks."""

    id: str
    name: str
    plans: tuple[GroupPlan, ...]
    jobs: Mapping[str, JobState]
    """Task → its newest job."""

    @property
    def courses(self) -> dict[str, TaskCourse]:
        """Task → its state, for each task that was started."""
        return {
            task: TaskCourse(
                job=job.name,
                tries=int(job.spec["workflow"]["tries"]),
                state=job.state,
                exit_code=job.exit_code,
                is_to_restart=job.is_to_restart,
            )
            for task, job in self.jobs.items()
        }

    @property
    def state(self) -> str:
        """The workflow's state, as one word."""
        return workflow_state(self.plans, self.courses)

    @property
    def since_s(self) -> float:
        """When one of its jobs last changed its state, as Unix time."""
        return max(job.since_s for job in self.jobs.values())

    def live(self) -> list[JobState]:
        """The jobs that have not ended."""
        return [job for job in self.jobs.values() if not job.is_over]

    def to_cancel(self) -> list[JobState]:
        """The jobs that live, and those whose tasks `submit` was about to start again when it was killed."""
        return [job for job in self.jobs.values() if not job.is_over or job.is_to_restart]


def jobs_known_to(nodes: JobNodes, asked: Sequence[InventoryNode]) -> dict[int, dict[str, JobState]]:
    """Slot → job's name → the job's state as the node in this slot alone describes it.

    The answers are not merged, so no node speaks for another one. Nodes that do not answer are left out.
    """
    answers = nodes.ask(asked, "list", timeout_s=LIST_S)
    return {
        slot: {job.name: job for job in job_states({slot: answer.words})}
        for slot, answer in answers.items()
        if answer.error is None
    }


def workflows_of(jobs: Iterable[JobState]) -> list[KnownWorkflow]:
    """The workflows that these jobs are tasks of, the latest changed first; jobs with a malformed spec are left out."""
    newest: dict[str, dict[str, JobState]] = {}
    plans: dict[str, tuple[str, tuple[GroupPlan, ...]]] = {}
    for job in jobs:
        row = job.spec.get("workflow")
        if not row:
            continue
        try:
            name, task, tries = str(row["id"]), str(row["task"]), int(row["tries"])
            plans[name] = (str(row["name"]), plans_from(row["plans"]))
        except (LookupError, TypeError, ValueError):
            continue
        other = newest.setdefault(name, {}).get(task)
        if other is None or int(other.spec["workflow"]["tries"]) < tries:
            newest[name][task] = job
    found = [
        KnownWorkflow(id=name, name=plans[name][0], plans=plans[name][1], jobs=rows) for name, rows in newest.items()
    ]
    return sorted(found, key=lambda workflow: -workflow.since_s)


def known_workflow(known: KnownJobs, name: str, cluster: str) -> KnownWorkflow:
    """The workflow of this id. Raises NothingMatched."""
    workflows = workflows_of(known.jobs)
    for workflow in workflows:
        if workflow.id == name:
            return workflow
    nearest = did_you_mean(name, [workflow.id for workflow in workflows])
    raise NothingMatched(f"no workflow {name!r} on {cluster}{nearest}", hint="clusterctl workflow list")


def table_row(workflow: KnownWorkflow) -> Sequence[str]:
    """The workflow's row in the table whose columns are `HEADER`."""
    since = datetime.fromtimestamp(workflow.since_s, UTC)
    tasks = sum(len(plan.tasks) for plan in workflow.plans)
    return (workflow.id, workflow.state, f"{since:%Y-%m-%d %H:%M:%S}", str(tasks))


def workflow_json(workflow: KnownWorkflow) -> dict[str, object]:
    """All that is known of the workflow, as JSON."""
    courses = workflow.courses
    return {
        "id": workflow.id,
        "workflow": workflow.name,
        "state": workflow.state,
        "groups": [
            {
                "group": plan.name,
                "state": group_step(plan, courses).state,
                "after": list(plan.after),
                "tasks": [_task_json(workflow, plan, task.name) for task in plan.tasks],
            }
            for plan in workflow.plans
        ],
    }


def workflow_text(workflow: KnownWorkflow) -> str:
    """What `workflow show` prints."""
    courses = workflow.courses
    lines = [f"{workflow.id}: {workflow.state}"]
    for plan in workflow.plans:
        after = f", after {', '.join(plan.after)}" if plan.after else ""
        lines.append(f"  group {plan.name}: {group_step(plan, courses).state}{after}")
        for task in plan.tasks:
            course = courses.get(task.name, NOT_STARTED)
            lead = " (lead)" if task.name == plan.lead and len(plan.tasks) > 1 else ""
            if not course.tries:
                lines.append(f"    {task.name}{lead}: not started")
                continue
            code = "" if course.exit_code is None else f", exit code {course.exit_code}"
            tries = f", try {course.tries}" if course.tries > 1 else ""
            lines.append(
                f"    {task.name}{lead}: {course.state}{code}{tries}, {_place(workflow, task.name)}, {course.job}"
            )
    return "\n".join(lines)


def _place(workflow: KnownWorkflow, task: str) -> str:
    member = workflow.jobs[task].spec["members"][0]
    return f"Node {member['slot']} ({member['name']})"


def _task_json(workflow: KnownWorkflow, plan: GroupPlan, name: str) -> dict[str, object]:
    course = workflow.courses.get(name, NOT_STARTED)
    job = workflow.jobs.get(name)
    member = None if job is None else job.spec["members"][0]
    return {
        "task": name,
        "is_lead": name == plan.lead,
        "state": course.state,
        "exit_code": course.exit_code,
        "tries": course.tries,
        "job": course.job or None,
        "slot": None if member is None else member["slot"],
        "node": None if member is None else member["name"],
    }
