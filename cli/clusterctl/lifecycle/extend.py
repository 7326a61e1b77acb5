"""`clusterctl extend`: moves the deadline on every layer, and makes, replaces and ends none of the cluster's machines.

The stack's config is written first, so that any later `up` finishes what is cut off here. Then, to end later: our own
resources alone (a new generation of the membership), the nodes, and last all else, with the schedule and the
reservation; to end earlier: all of the engine first, then the nodes. Whatever was not moved ends the cluster at the
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

from clusterctl.engine.region import machine_kind
from clusterctl.engine.stack_config import config_of_one_run, config_values, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.deadline_request import DeadlineRequest, Move
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.drift import lost_beside, missing_instances
from clusterctl.lifecycle.extend_checks import (
    half_done_before,
    refuse_extension,
    refuse_half_gone,
    refuse_state,
    refuse_times,
)
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, read_intent
from clusterctl.lifecycle.membership import deliver, membership_of
from clusterctl.lifecycle.opening import Held, open_change_of
from clusterctl.lifecycle.reservation import forget_ended, reserved_or_not
from clusterctl.lifecycle.spend_gate import agree_to
from clusterctl.lifecycle.unknown_machines import foretell_unknown
from clusterctl.lifecycle.up_checks import refuse_reaped
from clusterctl.output import Output, unshown_by
from clusterctl.text.headline import rehearsed
from clusterctl.text.instant import utc_now
from clusterctl.text.quantities import clock, count, duration, usd


@dataclass(frozen=True, kw_only=True)
class ExtendRequest:
    """What a person asked for."""

    inventory: Inventory
    wish: DeadlineRequest
    is_agreed: bool
    as_json: bool


def extend(request: ExtendRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Moves the deadline. Raises the error that a person should see when it is not moved everywhere."""
    with open_change_of("extend", request.inventory, home=home, environ=environ, output=output) as held:
        move_deadline(request, held)


def move_deadline(request: ExtendRequest, held: Held, *, now: Callable[[], datetime] = utc_now) -> None:
    """Moves the deadline of a cluster that this process holds already."""
    _Extension(request, held, now).run(held.state)


@dataclass(frozen=True, kw_only=True)
class _Meaning:
    """What an `extend` comes to."""

    intent: Intent
    plan: ClusterPlan
    move: Move


class _Extension:
    """One `extend` on a held stack."""

    def __init__(self, request: ExtendRequest, held: Held, now: Callable[[], datetime]) -> None:
        change = held.change
        self._request = request
        self._change = change
        self._output = change.output
        self._was_cut_off = held.was_cut_off
        self._time = now
        self._now = now()
        self._shown = change.typed(change.stack.directory)
        self._config_file = change.engine.environment.config_file

    def run(self, found: StackState) -> None:
        change, now = self._change, self._now
        refuse_state(found, cluster=change.cluster, shown=self._shown, now=now)
        refuse_reaped(change, found, shown=self._shown)
        meant = self._meaning(found)
        refuse_extension(
            change,
            found,
            self._request.wish,
            meant.intent,
            meant.plan,
            before=meant.move.before,
            shown=self._shown,
            now=now,
        )
        foretell_unknown(change, found)
        half_done = half_done_before(change.previous, self._request.inventory)
        if half_done is not None:
            self._output.note(f"  {half_done}")
        if self._ask(meant):
            self._refuse_times_again(meant)
        state = change.mend(found, was_cut_off=self._was_cut_off)
        missing = missing_instances(change.clients, state, tell=change.tell)
        if missing or self._was_cut_off:
            refuse_half_gone(lost_beside(change.clients, state), cluster=change.cluster, shown=self._shown)
        gone = {one.known.slot: one.why for one in missing}
        reserved = forget_ended(change, state.without(one.known.urn for one in missing))
        stays = [one.slot for one in state.instances if one.slot not in gone]
        meant = replace(meant, intent=reserved_or_not(meant.intent, reserved, stays=stays))
        self._refuse_times_again(meant)
        self._write(meant.intent.changes)
        with self._telling_if_stopped(meant.move):
            untaken = self._move(meant, state, gone)
        self._write({"extended-from": None})
        change.finish()
        unproven = try_deadline(change, slots={one.slot for one in state.instances} - gone.keys())
        self._end(meant, untaken, gone)
        if unproven is not None:
            raise unproven

    def _meaning(self, state: StackState) -> _Meaning:
        """The intent with the new end, its plan, and from where to where it moves the deadline."""
        change, written = self._change, read_config(self._config_file)
        membership = state.find(MEMBERSHIP_TYPE)
        assert membership is not None, "refused before"
        # One that was cut off is done again, not added to.
        values = config_values(written)
        began = values.get("extended-from") or str(membership.outputs["deadline"])
        base = datetime.fromisoformat(began)
        wanted = self._request.wish.changes(values, base=base)
        asked = read_intent(
            change.stack,
            with_values(written, wanted),
            nodes=len(state.instances),
            fresh_prices=change.home.prices_file,
        )
        intent = for_up(asked, state, change.seen(state))
        cluster_plan = plan_of(intent, state, now=self._now)
        return _Meaning(
            intent=replace(intent, changes={**intent.changes, **wanted}),
            plan=cluster_plan,
            move=Move(before=base, after=cluster_plan.deadline.at),
        )

    def _ask(self, meant: _Meaning) -> bool:
        """On AWS somebody agrees to what it adds, and True says so; a rehearsal costs nothing."""
        told = move_told(meant.plan, meant.move, now=self._now)
        if self._change.is_rehearsal or self._request.is_agreed:
            label = rehearsed(self._change.is_rehearsal, meant.plan.gpus_per_node > 0)
            self._output.note(f"{self._change.cluster}: {told}{label}")
            return False
        agree_to(
            self._output,
            meant.move.added(meant.plan),
            name=meant.plan.name,
            question=f"{told}. Move the deadline?",
            bound="--budget bounds what the cluster may cost in all",
            hint=f"{self._again(meant.move)} --yes",
            asks=not self._request.as_json,
        )
        return True

    def _refuse_times_again(self, meant: _Meaning) -> None:
        """Whoever was asked may have thought about it for longer than there was time, and a repair takes minutes."""
        wish, before = self._request.wish, meant.move.before
        refuse_times(self._change, wish, meant.intent, meant.plan, before=before, shown=self._shown, now=self._time())

    def _move(self, meant: _Meaning, state: StackState, gone: Mapping[int, str]) -> Mapping[int, str]:
        """Slot → why the node, which runs, has not got the new deadline."""
        own = [one.urn for type in (IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE) for one in state.of_type(type)]
        # A machine that is gone is left as it is: an `up` remakes it.
        all_else = [f"--exclude={one.urn}" for one in state.instances if one.slot in gone]
        if not meant.move.is_later:
            self._engine(meant, all_else)
            return self._deliver(meant, gone)
        self._engine(meant, [f"--target={urn}" for urn in own])
        untaken = self._deliver(meant, gone)
        self._engine(meant, all_else)
        return untaken

    def _engine(self, meant: _Meaning, options: Sequence[str]) -> None:
        """One run with the size that is there: another number of nodes in the config waits for an `up`."""
        nodes = len(meant.plan.slots)
        text = with_values(read_config(self._config_file), size_of_one_run(nodes))
        with config_of_one_run(self._config_file, text, why="extend") as temporary:
            result = self._change.run(
                "up", nodes=nodes, display=Display(self._output), options=options, config_file=temporary
            )
        if result.interrupted:
            raise KeyboardInterrupt
        if not result.succeeded:
            left = self._unmoved(meant.move)
            raise self._change.failure(result, doing="moving the deadline", more=left, hint=self._again(meant.move))

    def _deliver(self, meant: _Meaning, gone: Mapping[int, str]) -> Mapping[int, str]:
        change, config = self._change, meant.intent.config
        if change.is_rehearsal and machine_kind(change.stack.directory) == "none":
            return {}
        inventory = read_inventory(change.home.inventory_file(change.cluster))
        content = membership_of(inventory, config, slot_cidr=meant.plan.network.slot_cidr)
        living = [node for node in inventory.nodes if node.slot not in gone]
        return deliver(inventory, living, content, home=change.home)

    def _write(self, changes: Mapping[str, str | None]) -> None:
        kept = {key: value for key, value in changes.items() if key not in SIZE_KEYS}
        write_config(self._config_file, with_values(read_config(self._config_file), kept))

    def _end(self, meant: _Meaning, untaken: Mapping[int, str], gone: Mapping[int, str]) -> None:
        """Says what holds now. Raises SomeNodesFailed naming each node that has another deadline, or no machine."""
        move = meant.move
        inventory = read_inventory(self._change.home.inventory_file(self._change.cluster))
        self._output.note(f" {move_line(inventory, move, now=self._now)}")
        unshown = self._tell_program(move_json(inventory, move, meant.plan, {**gone, **untaken}))
        names = {node.slot: node.name for node in inventory.nodes}
        for slot, why in sorted(untaken.items()):
            self._output.note(f" {untold(names[slot], move, why, now=self._now)}")
        for slot, why in sorted(gone.items()):
            self._output.note(f" {names[slot]}: has no machine ({why})")
        if untaken or gone:
            slots = sorted({*untaken, *gone})
            named = ", ".join(names[slot] for slot in slots)
            raise SomeNodesFailed(
                f"{count(len(slots), 'node')} of {len(names)} did not take the new deadline: {named}",
                hint=self._again(move) if untaken else f"clusterctl up {self._shown}",
            )
        if unshown is not None:
            raise unshown

    def _tell_program(self, moved: Mapping[str, object]) -> Exception | None:
        """Why stdout did not take it: which nodes did not take the deadline is said first."""
        return unshown_by(lambda: self._output.json(moved)) if self._request.as_json else None

    @contextlib.contextmanager
    def _telling_if_stopped(self, move: Move) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._output.note(f"stopped. {self._unmoved(move)}\n  next: {self._again(move)}")
            raise

    def _unmoved(self, move: Move) -> str:
        return f"What was not moved ends the cluster at {clock(min(move.before, move.after), self._now)}."

    def _again(self, move: Move) -> str:
        return self._request.wish.again(self._change.cluster, move.after)


def move_told(cluster_plan: ClusterPlan, move: Move, *, now: datetime) -> str:
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


def untold(name: str, move: Move, why: str, *, now: datetime) -> str:
    """What it means that a node did not take the new deadline."""
    before, after = clock(move.before, now), clock(move.after, now)
    if move.after > move.before:
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
