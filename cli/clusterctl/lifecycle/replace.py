"""`clusterctl replace`: remakes the machine of one slot; same name, same address, the others are not touched."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NoReturn

from clusterctl_infra.config.flag_size import SIZE_KEYS
from clusterctl_infra.errors import EngineError, UsageError
from clusterctl_infra.names import IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE, SLOT_TAG
from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.clock import refuse_wrong_clock
from clusterctl.engine.progress import summary
from clusterctl.engine.region import machine_kind
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import EIP_TYPE, INSTANCE_TYPE, StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.capacity_refusals import spot_help
from clusterctl.lifecycle.cluster_name import refuse_other_name
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.drift import gone_spot_machines
from clusterctl.lifecycle.ending_stage import wait_for_ending
from clusterctl.lifecycle.fixed_at_birth import refuse_other_launch, refuse_other_region
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, read_intent, refuse
from clusterctl.lifecycle.node_stage import NodeStage
from clusterctl.lifecycle.opening import Held, open_change_of
from clusterctl.lifecycle.reservation import forget_ended, reserved_or_not
from clusterctl.lifecycle.spot_checks import refuse_below_spot_price, refuse_without_rights
from clusterctl.lifecycle.stopped import empty_places_bill, telling_if_stopped, told_stopped
from clusterctl.lifecycle.unknown_machines import foretell_unknown
from clusterctl.lifecycle.up_checks import refuse_reaped
from clusterctl.lifecycle.up_runs import run_until_places_are_free
from clusterctl.output import Output
from clusterctl.text.instant import utc_now
from clusterctl.text.next_commands import replace_slot


@dataclass(frozen=True, kw_only=True)
class ReplaceRequest:
    """What a person asked for."""

    inventory: Inventory
    slot: int
    is_agreed: bool
    ready_timeout_s: float | None


def replace_node(request: ReplaceRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Replaces the machine. Raises the error that a person should see when the slot has no ready machine after it."""
    with open_change_of("replace", request.inventory, home=home, environ=environ, output=output) as held:
        replace_held(request, held)


def replace_held(
    request: ReplaceRequest,
    held: Held,
    *,
    now: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Replaces a node of a cluster that this process holds already."""
    _Replacement(request, held, sleep).run(held.state, now=now())


class _Replacement:
    def __init__(self, request: ReplaceRequest, held: Held, sleep: Callable[[float], None]) -> None:
        self._request = request
        self._sleep = sleep
        self._change = held.change
        self._was_cut_off = held.was_cut_off
        self._config_file = held.change.engine.environment.config_file

    def run(self, found: StackState, *, now: datetime) -> None:
        change, request = self._change, self._request
        shown = change.typed(change.stack.directory)
        intent, cluster_plan = self._agreed(found, now=now)
        wait_for_ending(change, found, again=replace_slot(change.cluster, request.slot))
        state = change.mend(found, was_cut_off=self._was_cut_off)
        targets = slot_targets(state, request.slot, shown=shown)
        is_gone = targets[0] in gone_spot_machines(change.clients, state)
        if is_gone:  # the provider would cancel its request, which AWS has deleted by then
            change.engine.refresh([targets[0]])
        reserved = forget_ended(change, state)
        # A reservation is no target of this run: where there is none, none is made, not even for a single node.
        intent = reserved_or_not(intent, reserved, stays=[one.slot for one in state.instances])
        display = Display(change.output)
        waits = not (change.is_rehearsal and machine_kind(change.stack.directory) == "none")
        stage = NodeStage(
            change,
            intent.config,
            cluster_plan,
            display,
            waits=waits,
            gone=instance_in(state, request.slot),
            slots=frozenset({request.slot}),
        )
        with stage.watching():
            self._run(intent, targets, display, stage, state, is_gone=is_gone)
            with telling_if_stopped(change, shown=shown):
                unproven = try_deadline(change, slots={request.slot})
            stage.finish(timeout_s=request.ready_timeout_s)
        if unproven is not None:
            raise unproven

    def _agreed(self, found: StackState, *, now: datetime) -> tuple[Intent, ClusterPlan]:
        """What the slot is made from, after all that is refused, and the question. Raises ClusterctlError."""
        change = self._change
        shown, source = change.typed(change.stack.directory), change.stack.source
        refuse_gaps(found, self._request.slot, shown=shown)
        written = read_intent(
            change.stack,
            read_config(self._config_file),
            nodes=len(found.instances),
            fresh_prices=change.home.prices_file,
        )
        intent = for_up(written, found, change.seen(found))
        refuse_other_name(change, found, intent.config.name)
        refuse_other_region(found, intent.config.region, source=change.stack.source)
        cluster_plan = plan_of(intent, found, now=now)
        refuse_other_launch(found, cluster_plan, source=source, shown=shown)
        refuse(intent, cluster_plan, stack=change.stack, config_file=self._config_file, shown=shown, now=now)
        refuse_wrong_clock(change.clients, undone="nothing was replaced")
        refuse_reaped(change, found, shown=shown)
        foretell_unknown(change, found)
        refuse_without_rights(change.clients, cluster_plan)
        refuse_below_spot_price(change.clients, cluster_plan, now=now, source=source, tell=change.output.note)
        self._ask(is_spot=cluster_plan.price.spot is not None)
        return intent, cluster_plan

    def _run(
        self,
        intent: Intent,
        targets: tuple[str, ...],
        display: Display,
        stage: NodeStage,
        state: StackState,
        *,
        is_gone: bool,
    ) -> None:
        """The engine on these targets alone, with the size that is there: other changes of the config wait."""
        change = self._change
        # An `extend` that was cut off stays unfinished: the schedule is not among the targets.
        kept = {key: value for key, value in intent.changes.items() if key not in (*SIZE_KEYS, "extended-from")}
        write_config(self._config_file, with_values(read_config(self._config_file), kept))
        options = [*([] if is_gone else [f"--replace={targets[0]}"]), *(f"--target={urn}" for urn in targets)]
        text = with_values(read_config(self._config_file), intent.changes)
        with config_of_one_run(self._config_file, text, why="replace") as config_file:
            # AWS may count the place of the machine that it has just ended as taken for a while.
            run = partial(
                change.run,
                "up",
                nodes=len(state.instances),
                display=display,
                on_event=stage.event,
                options=options,
                config_file=config_file,
            )
            result = run_until_places_are_free(run, change, sleep=self._sleep)
        if not result.succeeded:
            self._failed(result, intent)
        change.finish()
        change.output.note(f" {summary(result.changes)}")

    def _failed(self, result: RunResult, intent: Intent) -> NoReturn:
        """A failed replacement is not rolled back: the others run on."""
        change, slot = self._change, self._request.slot
        shown = change.typed(change.stack.directory)
        if result.interrupted:
            change.output.note(told_stopped(change, result, shown=shown))
            raise KeyboardInterrupt
        after = change.engine.export() or StackState()
        more, hint = what_is_left(after, slot), f"clusterctl up {shown}"
        if (helps := spot_help(result, intent, source=change.stack.source, is_new=False)) is not None:
            more, hint = f"{helps.sentence} {more}", helps.hint or hint
        raise change.failure(result, doing=f"replacing slot {slot}", more=more, hint=hint)

    def _ask(self, *, is_spot: bool) -> None:
        if self._change.is_rehearsal or self._request.is_agreed:
            return
        node = next((one for one in self._request.inventory.nodes if one.slot == self._request.slot), None)
        name = f"slot {self._request.slot}" if node is None else f"{node.name} ({node.instance_id})"
        held = " Its place is not reserved: AWS may have no spot machine to put there." if is_spot else ""
        if not self._change.output.confirm(f"End {name} and make it anew? What is on its disks is lost.{held}"):
            again = replace_slot(self._request.inventory.cluster, self._request.slot)
            raise UsageError("not agreed, nothing was changed", hint=f"{again} --yes")


def instance_in(state: StackState, slot: int) -> str | None:
    """The instance that the state has in a slot."""
    return next((one.instance_id for one in state.instances if one.slot == slot), None)


def what_is_left(state: StackState, slot: int) -> str:
    """What is said of the slot, and of the others, after a replacement that failed."""
    slots = {one.slot for one in state.machines}
    left = "its machine runs on" if slot in slots else "it has no machine now"
    left += f", and {empty_places_bill(state.empty_places)}" if state.empty_places else ""
    return f"Slot {slot}: {left}; the others run on." if slots - {slot} else f"Slot {slot}: {left}."


def refuse_gaps(state: StackState, slot: int, *, shown: str) -> None:
    """Raises EngineError where the slot has no machine, or one before others has none, as after an `up` that failed.

    The engine is told how many nodes there are: with a gap before it, the last of them would be one too many, and end.
    """
    slots = [one.slot for one in state.instances]
    gaps = [str(one) for one in range(max(slots, default=0)) if one not in slots]
    if slot not in slots:
        raise EngineError(f"slot {slot} has no machine to replace", hint=f"clusterctl up {shown}")
    if gaps:
        told = f"slot {gaps[0]} has" if len(gaps) == 1 else f"slots {', '.join(gaps)} have"
        raise EngineError(
            f"{told} no machine, as after an up that failed: the cluster has to be whole before a node is replaced. "
            "Nothing was changed",
            hint=f"clusterctl up {shown}",
        )


def slot_targets(state: StackState, slot: int, *, shown: str) -> tuple[str, ...]:
    """The URNs that a replacement touches, the instance first. Raises EngineError when the slot has none."""
    found = next((one for one in state.instances if one.slot == slot), None)
    if found is None:
        raise EngineError(f"slot {slot} has no machine to replace", hint=f"clusterctl up {shown}")
    instance = next(one for one in state.of_type(INSTANCE_TYPE) if one.urn == found.urn)
    template = (instance.inputs.get("launchTemplate") or {}).get("id")
    parts = [one.urn for one in state.resources if one.id == template or _is_address_of(one, slot)]
    own = [one.urn for type in (IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE) for one in state.of_type(type)]
    return (found.urn, *parts, *own)


def _is_address_of(resource: StateResource, slot: int) -> bool:
    tags = resource.inputs.get("tags") or {}
    return resource.type == EIP_TYPE and tags.get(SLOT_TAG) == str(slot)
