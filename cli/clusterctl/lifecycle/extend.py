"""`clusterctl extend`: moves the deadline on every layer, and makes, replaces and ends none of the cluster's machines.

The stack's config is written first, so that any later `up` finishes what is cut off here. Then, to end later: our own
resources alone (a new generation of the membership), the nodes, and last all else, with the schedule and the
reservation; to end earlier: all resources first, then the nodes. Whatever was not moved ends the cluster at the
earlier of both times. See docs/adr/0016-extend-moves-what-ends-first-last.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from clusterctl_infra.config.flag_size import SIZE_KEYS, size_of_one_run
from clusterctl_infra.errors import SomeNodesFailed
from clusterctl_infra.names import IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE
from clusterctl_infra.outputs import Inventory, read_inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.engine.stack_config import config_of_one_run, config_values, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithPlan, WithState
from clusterctl.lifecycle.checks.table import run_checks, run_checks_of_time
from clusterctl.lifecycle.deadline_request import DeadlineRequest, Move
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.drift import lost_beside, missing_instances
from clusterctl.lifecycle.extend_checks import half_done_before
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, read_intent
from clusterctl.lifecycle.membership import deliver, membership_of
from clusterctl.lifecycle.newer_membership import REFUSED_FOR_ITS_NUMBER
from clusterctl.lifecycle.opening import Held, open_change_of
from clusterctl.lifecycle.reservation import forget_ended, reserved_or_not
from clusterctl.lifecycle.spend_gate import agree_to
from clusterctl.lifecycle.unknown_machines import preview_unknown
from clusterctl.lifecycle.whole_cluster import refuse_half_gone
from clusterctl.output import Output, unshown_by
from clusterctl.text.headline import rehearsed
from clusterctl.text.instant import utc_now
from clusterctl.text.quantities import clock, count, duration, usd


@dataclass(frozen=True, kw_only=True)
class ExtendRequest:
    """What a person asked for."""

    inventory: Inventory
    asked: DeadlineRequest
    is_agreed: bool
    as_json: bool


def extend(request: ExtendRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Moves the deadline. Raises the error that a person should see when it is not moved everywhere."""
    with open_change_of("extend", request.inventory, home=home, environ=environ, output=output) as held:
        move_deadline(request, held)


def move_deadline(request: ExtendRequest, held: Held, *, now: Callable[[], datetime] = utc_now) -> None:
    """Moves the deadline of a cluster that this process holds already."""
    change = held.change
    planned = checked_plan(request, held, now=now())
    move = move_of(planned)
    preview_unknown(change, planned.state)
    half_done = half_done_before(change.previous, request.inventory)
    if half_done is not None:
        change.output.note(f"  {half_done}")
    if ask(request, planned, move):
        run_checks_of_time("extend", replace(planned, now=now()))
    repaired = repair(planned, was_cut_off=held.was_cut_off)
    planned = replace(planned, intent=repaired.intent)
    # A repair takes minutes.
    run_checks_of_time("extend", replace(planned, now=now()))
    extension = Extension(request=request, planned=planned, move=move, repaired=repaired)
    keep_settings(change, planned.intent.changes)
    with _noting_what_is_unmoved(extension):
        untaken = move_everywhere(extension)
    keep_settings(change, {"extended-from": None})
    change.finish()
    slots = {instance.slot for instance in repaired.state.instances} - repaired.gone.keys()
    unproven = try_deadline(change, slots=slots)
    tell_end(extension, untaken)
    if unproven is not None:
        raise unproven


@dataclass(frozen=True, kw_only=True)
class RepairedCluster:
    """The cluster after the repair."""

    state: StackState
    gone: Mapping[int, str]
    """Slot → why it has no machine; an `up` remakes it."""
    intent: Intent
    """The intent of the move: with the cluster's reservation, or without one if that has ended."""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """A move of the deadline that has passed all checks."""

    request: ExtendRequest
    planned: WithPlan
    move: Move
    repaired: RepairedCluster

    @property
    def change(self) -> Change:
        """The change that holds the cluster."""
        return self.planned.change

    @property
    def again(self) -> str:
        """The command that asks for the same end."""
        return again(self.request, self.planned, self.move)

    @property
    def unmoved(self) -> str:
        """The sentence about what was not moved."""
        ends = min(self.move.before, self.move.after)
        return f"What was not moved ends the cluster at {clock(ends, self.planned.now)}."


def checked_plan(request: ExtendRequest, held: Held, *, now: datetime) -> WithPlan:
    """The plan with the new end, once it has passed all checks. Raises ClusterctlError."""
    change, found = held.change, held.state
    shown = change.typed(change.stack.directory)
    read = WithState(stack=change.stack, state=found, shown=shown, now=now, held=change)
    run_checks("extend", read)
    planned = plan_with_new_end(request.asked, read)
    run_checks("extend", planned, after=WithState)
    return planned


def plan_with_new_end(request: DeadlineRequest, read: WithState) -> WithPlan:
    """The intent with the new end, and its plan. Raises ConfigError."""
    change, state = read.change, read.state
    written = read_config(change.engine.environment.config_file)
    membership = state.find(MEMBERSHIP_TYPE)
    assert membership is not None, "refused before"
    # An extend that was cut off is repeated: the new end counts from the same old one.
    values = config_values(written)
    began = values.get("extended-from") or str(membership.outputs["deadline"])
    base = datetime.fromisoformat(began)
    wanted = request.changes(values, base=base)
    asked = read_intent(
        change.stack,
        with_values(written, wanted),
        nodes=len(state.instances),
        fresh_prices=change.home.prices_file,
    )
    intent = for_up(asked, state, change.seen(state))
    return WithPlan(
        **vars(read),
        intent=replace(intent, changes={**intent.changes, **wanted}),
        plan=plan_of(intent, state, now=read.now),
        request=request,
        deadline_before=base,
    )


def move_of(planned: WithPlan) -> Move:
    """From which end to which the deadline moves."""
    assert planned.deadline_before is not None, "the plan of an extend"
    return Move(before=planned.deadline_before, after=planned.plan.deadline.at)


def ask(request: ExtendRequest, planned: WithPlan, move: Move) -> bool:
    """Whether a person was asked and agreed to the added cost; with --yes, and in a rehearsal, nobody is asked.

    Raises UsageError.
    """
    change = planned.change
    effect = move_effect(planned.plan, move, now=planned.now)
    if change.is_rehearsal or request.is_agreed:
        label = rehearsed(change.is_rehearsal, planned.plan.gpus_per_node > 0)
        change.output.note(f"{change.cluster}: {effect}{label}")
        return False
    agree_to(
        change.output,
        move.added(planned.plan),
        name=planned.plan.name,
        question=f"{effect}. Move the deadline?",
        bound="--budget bounds what the cluster may cost in all",
        hint=f"{again(request, planned, move)} --yes",
        asks=not request.as_json,
    )
    return True


def again(request: ExtendRequest, planned: WithPlan, move: Move) -> str:
    """The command that asks for the same end, typed at any later time."""
    return request.asked.again(planned.change.cluster, move.after)


def repair(planned: WithPlan, *, was_cut_off: bool) -> RepairedCluster:
    """The cluster after the repair. Raises EngineError where nodes have lost more than their machines, CloudError."""
    change = planned.change
    state = change.repair_state(planned.state, was_cut_off=was_cut_off)
    missing = missing_instances(change.clients, state, tell=change.tell)
    if missing or was_cut_off:
        refuse_half_gone(lost_beside(change.clients, state), cluster=change.cluster, shown=planned.shown)
    gone = {instance.known.slot: instance.why for instance in missing}
    reserved = forget_ended(change, state.without(instance.known.urn for instance in missing))
    stays = [instance.slot for instance in state.instances if instance.slot not in gone]
    return RepairedCluster(state=state, gone=gone, intent=reserved_or_not(planned.intent, reserved, stays=stays))


def move_everywhere(extension: Extension) -> Mapping[int, str]:
    """Moves the deadline in the order that this module's docstring gives.

    Returns slot → why the node, which runs, did not take the new deadline.
    """
    state, gone = extension.repaired.state, extension.repaired.gone
    own = [part.urn for type in (IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE) for part in state.of_type(type)]
    # A machine that is gone is left as it is: an `up` remakes it.
    all_else = [f"--exclude={instance.urn}" for instance in state.instances if instance.slot in gone]
    if not extension.move.is_later:
        run_engine_on(extension, all_else)
        return tell_nodes(extension)
    run_engine_on(extension, [f"--target={urn}" for urn in own])
    untaken = tell_nodes(extension)
    run_engine_on(extension, all_else)
    return untaken


def run_engine_on(extension: Extension, options: Sequence[str]) -> None:
    """Runs the engine once for the present number of nodes: another number in the config waits for an `up`."""
    change, nodes = extension.change, len(extension.planned.plan.slots)
    config_file = change.engine.environment.config_file
    text = with_values(read_config(config_file), size_of_one_run(nodes))
    with config_of_one_run(config_file, text, why="extend") as temporary:
        result = change.run("up", nodes=nodes, display=Display(change.output), options=options, config_file=temporary)
    if result.interrupted:
        raise KeyboardInterrupt
    if not result.succeeded:
        raise change.failure(result, doing="moving the deadline", more=extension.unmoved, hint=extension.again)


def tell_nodes(extension: Extension) -> Mapping[int, str]:
    """Gives the running nodes the new membership. Returns slot → why a node did not take it."""
    change = extension.change
    if not change.has_machines:
        return {}
    inventory = read_inventory(change.home.inventory_file(change.cluster))
    slot_cidr = extension.planned.plan.network.slot_cidr
    config = extension.planned.intent.config
    content = membership_of(inventory, config, slot_cidr=slot_cidr)
    living = [node for node in inventory.nodes if node.slot not in extension.repaired.gone]
    return deliver(inventory, living, content, config.scripts, home=change.home)


def keep_settings(change: Change, changes: Mapping[str, str | None]) -> None:
    """Writes the new deadline into the stack's config, so that a later `up` finishes an interrupted extend."""
    config_file = change.engine.environment.config_file
    kept = {key: value for key, value in changes.items() if key not in SIZE_KEYS}
    write_config(config_file, with_values(read_config(config_file), kept))


def tell_end(extension: Extension, untaken: Mapping[int, str]) -> None:
    """Says what holds now. Raises SomeNodesFailed naming each node that has another deadline, or no machine."""
    change, move, now, gone = extension.change, extension.move, extension.planned.now, extension.repaired.gone
    output, request = change.output, extension.request
    inventory = read_inventory(change.home.inventory_file(change.cluster))
    output.note(f" {move_line(inventory, move, now=now)}")
    moved = move_json(inventory, move, extension.planned.plan, {**gone, **untaken})
    # An error of stdout is raised last: the nodes that did not take the deadline matter more.
    unshown = unshown_by(lambda: output.json(moved)) if request.as_json else None
    names = {node.slot: node.name for node in inventory.nodes}
    for slot, why in sorted(untaken.items()):
        output.note(f" {untaken_line(names[slot], move, why, now=now)}")
    for slot, why in sorted(gone.items()):
        output.note(f" {names[slot]}: has no machine ({why})")
    if untaken or gone:
        slots = sorted({*untaken, *gone})
        named = ", ".join(names[slot] for slot in slots)
        # Nodes with a newer membership than the state's refuse whatever `extend` makes; `up` makes a newer one still.
        is_newer = any(why.startswith(REFUSED_FOR_ITS_NUMBER) for why in untaken.values())
        raise SomeNodesFailed(
            f"{count(len(slots), 'node')} of {len(names)} did not take the new deadline: {named}",
            hint=extension.again if untaken and not is_newer else f"clusterctl up {extension.planned.shown}",
        )
    if unshown is not None:
        raise unshown


@contextlib.contextmanager
def _noting_what_is_unmoved(extension: Extension) -> Iterator[None]:
    """At a Ctrl-C, says what was not moved, and the command that continues."""
    try:
        yield
    except KeyboardInterrupt:
        extension.change.output.note(f"stopped. {extension.unmoved}\n  next: {extension.again}")
        raise


def move_effect(cluster_plan: ClusterPlan, move: Move, *, now: datetime) -> str:
    """`4 nodes run 2 h longer, until 19:22 UTC instead of 17:22 UTC: $440.36 more at $220.18/h`."""
    nodes, added = len(cluster_plan.slots), move.added(cluster_plan)
    ends = f"{clock(move.after, now)} instead of {clock(move.before, now)}"
    length = duration(move.after - move.before)
    if move.after < move.before:
        return f"{count(nodes, 'node')} end{'s' if nodes == 1 else ''} {length} earlier, at {ends}"
    if move.after == move.before:
        return f"the deadline stays {clock(move.after, now)}"
    more = f"{usd(added.until_deadline_usd)} more at {usd(added.usd_per_hour)}/h"
    return f"{count(nodes, 'node')} run{'s' if nodes == 1 else ''} {length} longer, until {ends}: {more}"


def move_line(inventory: Inventory, move: Move, *, now: datetime) -> str:
    """`train · ends 19:22 UTC (in 3 h 19 m: extend), was 17:22 UTC · generation 3`."""
    left = duration(max(timedelta(0), move.after - now))
    was = "" if move.after == move.before else f", was {clock(move.before, now)}"
    ends = f"ends {clock(move.after, now)} (in {left}: {inventory.deadline_reason}){was}"
    label = rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)
    return f"{inventory.name} · {ends} · generation {inventory.generation}{label}"


def untaken_line(name: str, move: Move, why: str, *, now: datetime) -> str:
    """What it means that a node did not take the new deadline."""
    before, after = clock(move.before, now), clock(move.after, now)
    if why.startswith(REFUSED_FOR_ITS_NUMBER):  # the deadline that it has instead is not known here
        means = f"may end at another time than {after}"
    elif move.after > move.before:
        means = f"still ends at {before}"
    elif move.after < move.before:
        means = f"would itself run until {before}; AWS ends it at {after}"
    else:
        means = f"may end at another time than {after}"
    return f"{name}: {means} ({why})"


def move_json(
    inventory: Inventory, move: Move, cluster_plan: ClusterPlan, untaken: Mapping[int, str]
) -> dict[str, object]:
    """What `clusterctl extend --json` prints."""
    added = move.added(cluster_plan).until_deadline_usd
    return {
        "cluster": inventory.cluster,
        "cluster_id": inventory.cluster_id,
        "rehearsal": inventory.rehearsal,
        "simulated": inventory.rehearsal,
        "deadline": move.after.isoformat(),
        "deadline_before": move.before.isoformat(),
        "deadline_reason": inventory.deadline_reason,
        "budget_usd": inventory.budget_usd,
        "added_usd": None if added is None else round(added, 2),
        "generation": inventory.generation,
        "nodes": [
            {
                "slot": node.slot,
                "name": node.name,
                "taken": node.slot not in untaken,
                "trouble": untaken.get(node.slot),
            }
            for node in inventory.nodes
        ],
    }
