"""The output of a workflow's tasks, each line with its task's name."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from clusterctl_infra.errors import NothingMatched
from clusterctl_infra.nearest import did_you_mean

from clusterctl.jobs.following import JobFollowing, Notice, OutputLine
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.known import members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import line_json, line_text
from clusterctl.output import Output
from clusterctl.workflows.jobs_of_tasks import KnownWorkflow


def show_logs(
    workflow: KnownWorkflow, nodes: JobNodes, output: Output, *, task: str | None, is_followed: bool, as_json: bool
) -> None:
    """Shows the output of one task, or of all tasks one after another; followed tasks are shown as their lines come.

    Raises NothingMatched.
    """
    chosen = _chosen(workflow, task)
    if not is_followed:
        for name, job in chosen:
            _show(name, job, nodes, output, is_followed=False, as_json=as_json)
        return
    threads = [
        threading.Thread(
            target=_show,
            args=(name, job, nodes, output),
            kwargs={"is_followed": True, "as_json": as_json},
            daemon=True,
        )
        for name, job in chosen
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _chosen(workflow: KnownWorkflow, task: str | None) -> Sequence[tuple[str, JobState]]:
    names = [each.name for plan in workflow.plans for each in plan.tasks]
    if task is not None and task not in names:
        raise NothingMatched(
            f"{workflow.id} has no task {task!r}{did_you_mean(task, names)}",
            hint=f"clusterctl workflow show {workflow.id}",
        )
    return [(name, workflow.jobs[name]) for name in names if name in workflow.jobs and task in (None, name)]


def _show(name: str, job: JobState, nodes: JobNodes, output: Output, *, is_followed: bool, as_json: bool) -> None:
    members = members_of(job, nodes.inventory)
    attempt = int(job.spec["attempt"])
    following = JobFollowing(nodes, members, job=job.name, attempt=attempt, is_followed=is_followed)
    for item in following.items():
        if isinstance(item, Notice):
            output.note(f"[{name}] [Node {item.slot}] {item.text}")
        elif isinstance(item, OutputLine) and as_json:
            output.json({"task": name, **line_json(item)}, is_line=True)
        elif isinstance(item, OutputLine):
            output.data(f"[{name}] {line_text(item, has_ranks=False)}")
