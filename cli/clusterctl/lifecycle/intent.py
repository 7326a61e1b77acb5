"""What a person wants of a stack: its configuration, its future settings, and the plan that follows from both and
the state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from clusterctl_infra.catalog.instance import FIRST_LAYOUT, NEWEST_LAYOUT
from clusterctl_infra.catalog.reader import Catalog, load_catalog
from clusterctl_infra.config.choice import Chosen, chosen_to_json
from clusterctl_infra.config.flag_size import size_of_one_run
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import OWN_KEYS, StackSettings, stack_settings
from clusterctl_infra.errors import CapExceeded
from clusterctl_infra.identity import Identity, stand_in_identity
from clusterctl_infra.launch import launch_changes, launch_facts
from clusterctl_infra.ledger import ledger_to_json
from clusterctl_infra.ledger_correction import LedgerCorrection, corrected, correction_to_json
from clusterctl_infra.names import IDENTITY_TYPE
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.planner import plan
from clusterctl_infra.plan.spot import spot_price

from clusterctl.cost.correction import corrections
from clusterctl.cost.sighting import SeenMachine
from clusterctl.engine.extended_budget import taken_back
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import config_values, with_values
from clusterctl.engine.stack_plan import more_problems, refuse_problems
from clusterctl.engine.state import StackState, deadline_in, generation_in, identity_in, ledger_in
from clusterctl.lifecycle.data import kept_in
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import clock, usd

Seen = Mapping[str, SeenMachine]
"""Instance id → what AWS has said of it so far."""
NOTHING_GIVEN: Mapping[str, str | None] = {}


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A configuration, the settings of the stack, and what has to change in the stack's config for them."""

    config: ClusterConfig
    settings: StackSettings
    changes: Mapping[str, str | None]
    """`clusterctl:` values to be written into the stack's config; None removes one."""
    config_text: str
    """The text of the stack's config: what was read, with the changes in it."""
    catalog: Catalog
    written: ClusterConfig | None = None
    """The configuration as it was written, before a chosen type or block was put into it; None: `config` is that."""


def read_intent(
    stack: Stack,
    config_text: str,
    *,
    nodes: int | None,
    given: Mapping[str, str | None] = NOTHING_GIVEN,
    fresh_prices: Path | None = None,
    is_rehearsal: bool = True,
) -> Intent:
    """The stack as it is written, with another number of nodes if one is given. Raises ConfigError.

    `given`: values that replace those in the config; None removes one.

    `is_rehearsal`: problems that matter on AWS alone are not listed beside others.

    `fresh_prices`: the file with this computer's newer prices; the program that the engine runs reads the same one.
    """
    changes: dict[str, str | None] = {**given, **({} if nodes is None else size_of_one_run(nodes))}
    text = with_values(config_text, changes)
    settings = stack_settings(config_values(text))
    catalog = load_catalog(fresh_prices)
    more = partial(more_problems, catalog=catalog, now=datetime.now(UTC), is_rehearsal=is_rehearsal)
    config = load_cluster(stack.cluster_file, overrides=settings.overrides, more_problems=more, source=stack.source)
    return Intent(
        config=config.narrowed(settings.chosen, settings.block),
        settings=settings,
        changes=changes,
        config_text=text,
        catalog=catalog,
        written=config,
    )


def without_extended_settings(intent: Intent, stack: Stack, *, fresh_prices: Path | None = None) -> Intent:
    """The intent without what an `extend` wrote, for a stack without a cluster: it was meant for one that is gone."""
    changes = taken_back(config_values(intent.config_text))
    if not changes:
        return intent
    text = with_values(intent.config_text, changes)
    again = read_intent(stack, text, nodes=None, fresh_prices=fresh_prices)
    return replace(again, changes={**intent.changes, **again.changes, **changes})


def for_up(intent: Intent, state: StackState, seen: Seen) -> Intent:
    """The intent of an `up` on this state: with a copy of its ledger, no longer down, as a new run after a `down`."""
    identity = identity_in(state, region=intent.config.region)
    run = intent.settings.run
    if identity is None:
        run = 1
    elif intent.settings.down or _is_launched_anew(intent, state):
        run = max(run, identity.run + 1)
    changes: dict[str, str | None] = {
        **_ledger_changes(intent, state, seen),
        "down": None,
        "kept": None,
        "run": None if run == 1 else str(run),
        # An `extend` that was cut off is finished by this run; a new run has its whole run time.
        "extended-from": None,
        **({} if identity is not None and identity.run == run else {"until": None}),
        # Other machines are elsewhere in the network: a new run orders its ranks anew.
        **({} if keeps_ranks(intent, identity, run) else {"slot-ranks": None}),
        **_choice(intent, state),
        "layout": _layout(identity),
    }
    return with_changes(intent, changes)


def _layout(identity: Identity | None) -> str | None:
    """How interfaces are laid out: as when the cluster was born; a new one has the newest way. None: the first way."""
    layout = NEWEST_LAYOUT if identity is None else identity.layout
    return None if layout == FIRST_LAYOUT else str(layout)


def _choice(intent: Intent, state: StackState) -> dict[str, str | None]:
    """The setting for a type and zone that are chosen already: a living cluster's own, whatever a list says now."""
    identity = state.find(IDENTITY_TYPE)
    if identity is None:
        return {"chosen": None}
    written = intent.config if intent.written is None else intent.written
    if not written.is_list:
        return {}
    kinds = [instance.instance_type for instance in state.instances]
    if not kinds:
        return {"chosen": None}
    name = next((kind for kind in kinds if kind is not None), identity.outputs.get("instance_type"))
    return {"chosen": chosen_to_json(Chosen(instance_type=name, zone=str(identity.outputs["zone"])))}


def _is_launched_anew(intent: Intent, state: StackState) -> bool:
    """Whether another placement or capacity is wanted than was decided, while no machine exists: that is a new run."""
    identity = state.find(IDENTITY_TYPE)
    decided = None if identity is None else identity.outputs.get("launch")
    config = intent.config
    wanted = launch_facts(placement=config.grouping, capacity=config.market)
    return not state.instances and bool(launch_changes(decided or {}, wanted))


def keeps_ranks(intent: Intent, identity: Identity | None, run: int) -> bool:
    """Whether an order of ranks made earlier still stands."""
    return intent.config.ranks == "topology" and identity is not None and identity.run == run


def without_reservation(intent: Intent, *, reserves_nothing: bool) -> Intent:
    """The intent of a run that reserves places, unless `reserves_nothing`."""
    return with_changes(intent, {"unreserved": "true" if reserves_nothing else None})


def for_zero_nodes(intent: Intent, state: StackState, seen: Seen) -> Intent:
    """The intent of zero nodes until the next `up`: of its storage only what is there, and is to be kept, stays."""
    mounts = [file_system.mount for file_system in kept_in(state, intent.config, load_catalog())]
    return with_changes(intent, {**_ledger_changes(intent, state, seen), "down": "true", "kept": _text(mounts)})


def without_own_values(config_text: str) -> str:
    """The stack's config after the last resource is gone: only what a person wrote."""
    return with_values(config_text, {**dict.fromkeys(OWN_KEYS), **taken_back(config_values(config_text))})


def plan_of(intent: Intent, state: StackState, *, now: datetime) -> ClusterPlan:
    """The plan; before the first `up` and in a new run it begins now."""
    config, settings = intent.config, intent.settings
    return plan(
        config,
        intent.catalog,
        identity=identity_for(intent, state, now=now),
        ledger=settings.ledger,
        now=now,
        down=settings.down,
        kept=settings.kept,
        slot_ranks=settings.slot_ranks,
        until=settings.until,
        adopted=settings.adopted,
    )


def identity_for(intent: Intent, state: StackState, *, now: datetime) -> Identity:
    """The identity that the run will have."""
    config = intent.config
    found = identity_in(state, region=config.region)
    if found is None:
        owner = config.owner or "unknown"
        zone = config.zone or intent.settings.zone
        return stand_in_identity(owner=owner, image_id=None, zone=zone, region=config.region, now=now)
    if intent.settings.run != found.run:
        return replace(found, run=intent.settings.run, started_at=now)
    return found


def refuse(
    intent: Intent, cluster_plan: ClusterPlan, *, stack: Stack, config_file: Path, shown: str, now: datetime
) -> None:
    """Raises CapExceeded after the deadline, ConfigError with all problems of the plan; warnings pass.

    `shown` is the stack as it is typed; `config_file`: where its Pulumi config lies.
    """
    deadline = cluster_plan.deadline
    if deadline.at <= now and deadline.reason == "budget" and deadline.budget_usd is not None:
        is_kept = "budget_usd" in intent.settings.overrides
        setting = f"caps.budget_usd in {stack.source}"
        if is_kept:  # as `extend --budget` leaves it, which overrides the file
            setting = f"clusterctl:budget_usd in {config_file}, or none there and one in {stack.source},"
        raise CapExceeded(
            f"{intent.config.name} ended at {clock(deadline.at, now)}: its budget of {usd(deadline.budget_usd)} is "
            f"spent. It counts over all runs: a higher {setting} lets it continue, and clusterctl down {shown} ends "
            "what is left",
            hint=edit(config_file) if is_kept else f"clusterctl down {shown}",
        )
    if deadline.at <= now and deadline.reason in ("reservation", "capacity-block"):
        raise CapExceeded(
            f"{intent.config.reservation_id} lets {intent.config.name} live until {clock(deadline.at, now)}, which is "
            f"over: name another in {stack.source}, or none",
            hint=edit(stack.source),
        )
    if deadline.at <= now:
        raise CapExceeded(
            f"{intent.config.name} ended at {clock(deadline.at, now)}: its run time was over; another run begins after "
            "a down",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
    refuse_problems(cluster_plan, stack, overrides=intent.settings.overrides)


def with_changes(intent: Intent, changes: Mapping[str, str | None]) -> Intent:
    """The intent with other values in the stack's config; None removes one."""
    text = with_values(intent.config_text, changes)
    settings = stack_settings(config_values(text))
    written = intent.config if intent.written is None else intent.written
    return replace(
        intent,
        config=written.narrowed(settings.chosen, settings.block),
        changes={**intent.changes, **changes},
        config_text=text,
        settings=settings,
        written=written,
    )


def _ledger_changes(intent: Intent, state: StackState, seen: Seen) -> dict[str, str | None]:
    """The state's ledger corrected by what AWS said, for the plan; and the corrections, for the state."""
    ledger = ledger_in(state)
    if ledger is None:
        return {"ledger": None, "corrected": None}
    spans = corrections(ledger, seen, ends_by=deadline_in(state), price_of=partial(_price_of, intent))
    correction = LedgerCorrection(generation=generation_in(state), spans=spans)
    return {
        "ledger": _text(ledger_to_json(corrected(ledger, spans))),
        "corrected": _text(correction_to_json(correction)) if spans else None,
    }


def _price_of(intent: Intent, machine: SeenMachine) -> float | None:
    """The most that AWS bills for the machine, in US dollars per hour; None where the price list does not know."""
    name, config = machine.instance_type, intent.config
    on_demand = None if name is None else intent.catalog.price_usd_per_hour(name, config.region)
    if config.market == "capacity-block" and not machine.is_spot:
        return 0.0  # paid in advance
    if not machine.is_spot:
        return on_demand
    cap = config.caps.price_usd_per_hour
    return spot_price(cap_usd_per_hour=cap, on_demand_usd_per_hour=on_demand, list_usd_per_hour=None).max_usd_per_hour


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
