"""What a change of a cluster means for the jobs that run on it: `up` and `replace` refuse to end them unless forced.

`down` only names them and fetches their output: a job is never a reason to keep what bills.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.jobs.running import jobs_running_on, jobs_text
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.final_sum import known_here
from clusterctl.text.quantities import count


def tell_running(change: Change, state: StackState) -> None:
    """Names the jobs that end with the cluster."""
    jobs = _jobs(change, state, {machine.slot for machine in state.machines})
    if jobs:
        change.output.note(ending_line(jobs))


def refuse_running(change: Change, state: StackState, slots: Collection[int], *, is_forced: bool, again: str) -> None:
    """Raises UsageError if a job runs on one of these slots, whose machines are about to end.

    `is_forced`: the jobs are only named.
    """
    jobs = _jobs(change, state, slots)
    if jobs:
        change.output.note(lost_line(jobs, machines=len(set(slots)), is_forced=is_forced, again=again))


def keep_jobs(change: Change, state: StackState) -> None:
    """Fetches the output of the cluster's jobs before its nodes end, as far as it arrives in time."""
    known = _known(change, state)
    if known is None or not state.machines:
        return
    ending: Callable[[Inventory, Home], list[str]] = importlib.import_module("clusterctl.jobs.ending").keep_all
    for line in ending(known, change.home):
        change.output.note(f"  jobs     {line}")


def ending_line(jobs: Mapping[str, Sequence[int]]) -> str:
    """The line of `down` about the jobs that run."""
    return f"  jobs     {jobs_text(jobs)}: {'it ends' if len(jobs) == 1 else 'they end'} too"


def lost_line(jobs: Mapping[str, Sequence[int]], *, machines: int, is_forced: bool, again: str) -> str:
    """The line about the jobs that are lost with so many machines. Raises UsageError unless that is forced."""
    if is_forced:
        return f"  jobs     {jobs_text(jobs)}: lost with {count(machines, 'machine')}"
    name = next(iter(jobs))
    raise UsageError(
        f"{count(len(jobs), 'job')} would be lost, nothing was changed: {jobs_text(jobs)}",
        hint=f"clusterctl job wait {name}, or {again} --force",
    )


def _jobs(change: Change, state: StackState, slots: Collection[int]) -> dict[str, tuple[int, ...]]:
    known = _known(change, state) if slots else None
    if known is None:
        return {}
    return jobs_running_on(known, [node for node in known.nodes if node.slot in slots], change.home)


def _known(change: Change, state: StackState) -> Inventory | None:
    return known_here(change.home, change.cluster, cluster_id=state.cluster_id)
