"""Stopping what runs of a workflow."""

from __future__ import annotations

import time
from collections.abc import Callable

from clusterctl_infra.errors import ClusterctlError

from clusterctl.jobs.known import members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.workflows.jobs_of_tasks import KnownWorkflow, jobs_on
from clusterctl.workflows.task_job import GRACE_S

POLL_S = 0.5
ENDED_WITHIN_S = GRACE_S + 30.0


def cancel(workflow: KnownWorkflow, nodes: JobNodes, tell: Callable[[str], None]) -> None:
    """Returns when nothing of it runs. Raises ClusterctlError where something still does."""
    left = {job.name: job for job in workflow.live()}
    for job in left.values():
        for answer in nodes.ask(members_of(job, nodes.inventory), "cancel", job.name).values():
            if answer.error is not None:
                tell(answer.told)
    until_s = time.monotonic() + ENDED_WITHIN_S
    while left:
        members = {node.slot: node for job in left.values() for node in members_of(job, nodes.inventory)}
        known, _ = jobs_on(nodes, list(members.values()))
        left = {name: job for name, job in left.items() if name not in known or not known[name].is_over}
        if not left:
            return
        if time.monotonic() > until_s:
            told = f"{workflow.id}: not ended within {ENDED_WITHIN_S:g} s: {', '.join(left)}"
            raise ClusterctlError(told, hint="clusterctl jobs")
        time.sleep(POLL_S)
