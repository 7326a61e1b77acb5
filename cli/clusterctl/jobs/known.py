"""The jobs that a cluster's nodes know. Jobs are recorded on the nodes, so every computer sees the same ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import NothingMatched, NotReached
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import home_directory
from clusterctl.jobs.job_state import JobState, job_states
from clusterctl.jobs.node_answers import Answer, JobNodes
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.remote_command import usable_keys

LIST_S = 30.0
"""How long a node may take to say which jobs it knows."""


@dataclass(frozen=True, kw_only=True)
class KnownJobs:
    """The jobs that nodes reported, and the nodes that did not answer."""

    jobs: Sequence[JobState]
    """Those that go on first, then by their last change, the latest first."""
    unheard: Sequence[Answer]
    """The answers that are errors, each with its node."""


def job_nodes(inventory: Inventory, *, connect_timeout_s: float) -> JobNodes:
    """What asks a cluster's nodes about jobs. Raises NotReached when this computer has no key for them."""
    keys = usable_keys(inventory, home_directory(os.environ))
    return JobNodes(inventory=inventory, keys=keys, deadlines=Deadlines.within(connect_timeout_s))


def known_jobs(nodes: JobNodes) -> KnownJobs:
    """All jobs. Raises NotReached when no node answers."""
    answers = nodes.ask(nodes.inventory.nodes, "list", timeout_s=LIST_S)
    heard = {slot: answer.words for slot, answer in answers.items() if answer.error is None}
    unheard = [answer for answer in answers.values() if answer.error is not None]
    if unheard and not heard:
        raise NotReached(f"no node says which jobs there are; {unheard[0].error_line}", hint="clusterctl status")
    return KnownJobs(jobs=job_states(heard), unheard=unheard)


def known_job(nodes: JobNodes, name: str) -> JobState:
    """The job of this name. Raises NothingMatched, NotReached."""
    known = known_jobs(nodes).jobs
    for job in known:
        if job.name == name:
            return job
    nearest = did_you_mean(name, [job.name for job in known])
    raise NothingMatched(f"no job {name!r} on {nodes.inventory.cluster}{nearest}", hint="clusterctl jobs")


def members_of(job: JobState, inventory: Inventory) -> tuple[InventoryNode, ...]:
    """The nodes of a job, as the inventory has them."""
    slots = set(job.slots)
    return tuple(node for node in inventory.nodes if node.slot in slots)
