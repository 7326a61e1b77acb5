"""A job's state, put together from what all its nodes say of it. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # JSON

from clusterctl_infra.errors import UsageError

from clusterctl.on_node.job import judge

ORDER = (judge.STOPPING, judge.RUNNING, judge.STARTING, judge.PREPARING, judge.WAITING)
"""The states of a job that goes on, the furthest first: a job is as far as the furthest of its nodes."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """One job, as its nodes describe it."""

    spec: Mapping[str, Any]
    state: str
    since_s: float
    by_slot: Mapping[int, Mapping[str, Any]]
    """What each node that was reached says of it."""
    unheard: tuple[int, ...]
    """Its slots that said nothing."""
    outcome: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.spec["job"])

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots of its nodes, ascending."""
        return tuple(sorted(int(member["slot"]) for member in self.spec["members"]))

    @property
    def is_over(self) -> bool:
        """Whether the state is final."""
        return self.state in judge.FINAL

    @property
    def is_to_restart(self) -> bool:
        """Whether the workflow that it is a task of cancelled it in order to start that task again."""
        return any(self.by_slot.get(slot, {}).get("is_to_restart") is True for slot in self.slots)

    @property
    def exit_code(self) -> int | None:
        """The exit code with which `clusterctl run` ends; None while the job goes on."""
        return None if self.outcome is None else int(self.outcome["exit_code"])


def job_states(answers: Mapping[int, Mapping[str, Any]]) -> list[JobState]:
    """All jobs that these nodes know: those that go on first, then by their last change, the latest first.

    `answers`: slot → what the node there answered to `list`.
    """
    specs: dict[str, list[Mapping[str, Any]]] = {}
    states: dict[str, dict[int, Mapping[str, Any]]] = {}
    for slot, answer in answers.items():
        for row in answer["jobs"]:
            name = str(row["spec"]["job"])
            specs.setdefault(name, []).append(row["spec"])
            states.setdefault(name, {})[slot] = row["state"]
    # All nodes of a job have the same spec, so a node that sends another one is outvoted.
    found = [merged(_most_common(same), states[name]) for name, same in specs.items()]
    return sorted(found, key=lambda job: (job.is_over, -job.since_s))


def _most_common(specs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    texts = [json.dumps(spec, sort_keys=True) for spec in specs]
    most = Counter(texts).most_common(1)[0][0]
    return specs[texts.index(most)]


def chosen_attempt(job: JobState, wanted: int | None) -> int:
    """The number of the wanted attempt, or of the latest if None. Raises UsageError if there was no such attempt."""
    latest = int(job.spec["attempt"])
    if wanted is None:
        return latest
    if not 1 <= wanted <= latest:
        there = "only attempt 1" if latest == 1 else f"the attempts 1 to {latest}"
        raise UsageError(f"{job.name} has {there}, no attempt {wanted}", hint=f"clusterctl job show {job.name}")
    return wanted


def merged(spec: Mapping[str, Any], by_slot: Mapping[int, Mapping[str, Any]]) -> JobState:
    """The job's state from those of its nodes. It is over when all nodes that answered say so.

    `by_slot`: slot → the state that the node there reports. Without any answer the job is taken to be lost.
    """
    slots = sorted(int(member["slot"]) for member in spec["members"])
    heard = [by_slot[slot] for slot in slots if slot in by_slot]
    going_on = [row for row in heard if row["state"] not in judge.FINAL]
    if going_on:
        state = min((str(row["state"]) for row in going_on), key=ORDER.index)
        outcome = None
    else:
        outcome = _outcome(heard)
        state = str(outcome["state"])
    return JobState(
        spec=spec,
        state=state,
        since_s=max((float(row["since_s"]) for row in heard), default=0.0),
        by_slot=dict(by_slot),
        unheard=tuple(slot for slot in slots if slot not in by_slot),
        outcome=outcome,
    )


def _outcome(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first of the nodes' outcomes that is not `lost`, which is the coordinator's decision; else `lost`."""
    found: list[Mapping[str, Any]] = [row["outcome"] for row in rows if row.get("outcome")]
    decided = [outcome for outcome in found if outcome["state"] != judge.LOST]
    return (decided or found or [judge.outcome(judge.LOST, "no node knows how it ended", ())])[0]
