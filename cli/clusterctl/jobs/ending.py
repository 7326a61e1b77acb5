"""Brings the output of jobs to this computer before their nodes are ended.

A failure here never keeps a node running: the node costs money.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from clusterctl_infra.outputs import Inventory

from clusterctl.home import Home
from clusterctl.jobs.fetching import Fetched
from clusterctl.jobs.job_state import JobState, job_states
from clusterctl.jobs.kept_logs import KeptJob, keep_job, kept_job
from clusterctl.jobs.known import members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.remote_command import usable_keys
from clusterctl.text.quantities import count

CONNECT_S = 5.0
LIST_AT_THE_END_S = 10.0
"""Less than elsewhere: the cluster bills until it is ended."""
KEEP_S = 60.0
"""For all jobs together: an hour of some clusters costs hundreds of dollars."""


def keep_all(inventory: Inventory, home: Home) -> list[str]:
    """Fetches the jobs' output that is not here yet, and returns the lines to show. Raises nothing."""
    began_s = time.monotonic()
    try:
        nodes = JobNodes(inventory=inventory, keys=usable_keys(inventory, home), deadlines=Deadlines.within(CONNECT_S))
        answers = nodes.ask(inventory.nodes, "list", timeout_s=LIST_AT_THE_END_S)
        jobs = job_states({slot: answer.words for slot, answer in answers.items() if answer.error is None})
        wanted = [job for job in jobs if not is_here(job, inventory, home)]
        kept: list[str] = []
        left: list[str] = []
        for job in wanted:
            left_s = KEEP_S - (time.monotonic() - began_s)
            there = [node for node in members_of(job, inventory) if node.slot in job.by_slot]
            is_late = left_s < 1.0
            fetched = [] if is_late else keep_job(job, nodes, there, home, timeout_s=left_s)
            (kept if came_whole(job, fetched, inventory, home) else left).append(job.name)
    except Exception as e:  # noqa: BLE001 the cluster is ended next, whatever went wrong here
        return [f"their output is not kept here: {e}"]
    lines = [f"the output of {count(len(kept), 'job')} is kept here: clusterctl job logs {kept[0]}"] if kept else []
    return lines + ([f"not all of the output is kept here: {', '.join(left)}"] if left else [])


def is_here(job: JobState, inventory: Inventory, home: Home) -> bool:
    """Whether the job has ended, and all files of each of its nodes came here after that."""
    here = _kept(job, inventory, home)
    if here is None or not job.is_over:
        return False
    ended = {slot: float(words["since_s"]) for slot, words in job.by_slot.items()}
    return all(slot in ended and here.has_all_since(slot, ended[slot]) for slot in job.slots)


def came_whole(job: JobState, fetched: Sequence[Fetched], inventory: Inventory, home: Home) -> bool:
    """Whether this fetch brought something and did not fail, and all files of each node of the job are here after it.

    A silent node's files count if they came after the job had ended there.
    """
    here = _kept(job, inventory, home)
    is_fetched = bool(fetched) and all(each.error is None for each in fetched)
    return is_fetched and here is not None and not here.short_slots


def _kept(job: JobState, inventory: Inventory, home: Home) -> KeptJob | None:
    """What is kept of the job; None if there is only a job of the same name on an earlier cluster."""
    here = kept_job(home, inventory.cluster, job.name)
    return here if here is not None and here.state.spec.get("cluster_id") == inventory.cluster_id else None
