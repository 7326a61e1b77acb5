"""Before a new cluster is made: asks AWS, one after the other, which type and zone it has capacity for."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from clusterctl_infra.config.choice import Chosen, chosen_to_json
from clusterctl_infra.errors import CloudError, NoCapacity
from clusterctl_infra.identity import CLUSTER_ID_LENGTH
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.capacity_trial import (
    LASTS,
    LATE,
    NO_CAPACITY,
    Answer,
    Candidate,
    CapacityTrial,
    ask_for_capacity,
    offered,
)
from clusterctl.engine.state import StackState, identity_in
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithPlan
from clusterctl.lifecycle.intent import Intent, plan_of, with_changes
from clusterctl.text.instant import utc_now
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import usd
from clusterctl.text.table import render_table

ROOM = "room"


def candidates_of(
    clients: Clients, intent: Intent, state: StackState, *, source: str, before: Callable[[], None] = lambda: None
) -> tuple[Candidate, ...]:
    """The types and zones to choose from; empty where there is nothing to choose.

    That is so if the cluster has machines, is not on demand, or has both type and zone decided. `before` is called
    before AWS is asked. Raises CloudError where AWS offers none of the types there.
    """
    config = intent.config
    if state.instances or config.market != "on-demand":
        return ()
    identity = identity_in(state, region=config.region)
    zone = config.zone or intent.settings.adopted.zone if identity is None else identity.zone
    if zone is not None and not config.is_list:
        return ()
    before()
    choice = config.instance_choice(intent.catalog)
    names = choice.tried or (choice.name,)
    found = tuple(each for each in offered(clients, names) if zone in (None, each.zone))
    if not found:
        raise CloudError(
            f"AWS offers {' and '.join(names)} nowhere in {zone or config.region}: choose another type, or another "
            "region. Nothing was made",
            code="Unsupported",
            hint=edit(source),
        )
    return found


def capacity_words(candidates: Sequence[Candidate], cluster_plan: ClusterPlan) -> str | None:
    """What asking costs, and which of the types the price is for; None where nothing is asked.

    `First AWS is asked for capacity, by a reservation that is cancelled at once: $3.67 for each minute …`.
    """
    if len(candidates) < 2:
        return None
    price = cluster_plan.price.node_usd_per_hour
    hourly = None if price is None else price * len(cluster_plan.slots)
    worst = None if hourly is None else hourly * ((LASTS + LATE).total_seconds() / 3600)
    minute = None if hourly is None else hourly / 60
    names = dict.fromkeys(candidate.instance_type for candidate in candidates)
    dearest = f"{cluster_plan.instance_type} is the most expensive of {', '.join(names)}. " if len(names) > 1 else ""
    return (
        f"{dearest}First AWS is asked for capacity, by a reservation that is cancelled at once: {usd(minute)} for each "
        f"minute that it exists, {usd(worst)} at worst, if this computer dies before it is cancelled."
    )


def chosen(change: Change, planned: WithPlan) -> WithPlan:
    """The plan, with the type and zone that AWS has capacity for. Raises NoCapacity, CloudError."""
    candidates = planned.candidates
    if not candidates:
        return planned
    found = candidates[0] if len(candidates) == 1 else _candidate_with_capacity(change, planned)
    name = found.instance_type if planned.intent.config.is_list else None
    text = chosen_to_json(Chosen(instance_type=name, zone=found.zone))
    now, intent = utc_now(), with_changes(planned.intent, {"chosen": text})
    return replace(planned, now=now, intent=intent, plan=plan_of(intent, planned.state, now=now), candidates=())


def _candidate_with_capacity(change: Change, planned: WithPlan) -> Candidate:
    config = planned.intent.config
    trial = CapacityTrial(
        trial_id=secrets.token_hex(CLUSTER_ID_LENGTH // 2),
        cluster=change.name,
        owner=planned.plan.owner,
        places=len(planned.plan.slots),
        is_grouped=config.grouping == "cluster",
        tags=config.tags,
    )
    with change.trying(trial.trial_id):
        answers = ask_for_capacity(change.clients, trial, planned.candidates, now=utc_now, tell=change.tell)
    last = answers[-1]
    if config.is_list or any(answer.refusal for answer in answers):
        change.output.note(capacity_table(answers, places=trial.places))
    if last.refusal is None:
        return last.candidate
    raise _no_capacity(answers, planned)


def capacity_table(answers: Sequence[Answer], *, places: int) -> str:
    """What AWS said to each type and zone, zones with the same answer together."""
    return render_table(("type", "zones", "AWS says"), _rows(answers, places=places))


def _rows(answers: Sequence[Answer], *, places: int) -> Iterator[tuple[str, str, str]]:
    def same(answer: Answer) -> tuple[str, str | None]:
        return answer.candidate.instance_type, answer.refusal

    for (name, refusal), group in itertools.groupby(answers, key=same):
        zones = ", ".join(answer.candidate.zone for answer in group)
        yield name, zones, f"{ROOM} for {places}" if refusal is None else refusal


def _no_capacity(answers: Sequence[Answer], planned: WithPlan) -> CloudError:
    """The error for a lack of capacity; NoCapacity if waiting may help."""
    names = dict.fromkeys(answer.candidate.instance_type for answer in answers)
    zones = dict.fromkeys(answer.candidate.zone for answer in answers)
    lacks = next((answer for answer in answers if answer.refusal in NO_CAPACITY), None)
    kept = "What existed before is unchanged." if not planned.state.is_empty else "No node runs, nothing bills."
    message = (
        f"there is no room for {len(planned.plan.slots)} × {' or '.join(names)} in {', '.join(zones)}; nothing was "
        f"made. {kept}"
    )
    again = f"clusterctl up {planned.shown} --retry-until-up"
    if lacks is not None:
        return NoCapacity(f"InsufficientInstanceCapacity: {message}", code="InsufficientInstanceCapacity", hint=again)
    code = answers[0].refusal or "Unsupported"
    return CloudError(f"{code}: {message}", code=code, hint=edit(planned.source))
