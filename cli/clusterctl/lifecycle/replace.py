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

from clusterctl.engine.boundary import RunResult
from clusterctl.engine.progress import summary
from clusterctl.engine.stack_config import config_of_one_run, read_config, with_values, write_config
from clusterctl.engine.state import EIP_TYPE, INSTANCE_TYPE, StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.capacity_refusals import spot_help
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithPlan, WithPreview, WithState
from clusterctl.lifecycle.checks.table import run_checks
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.drift import gone_spot_machines, lost_ways_out
from clusterctl.lifecycle.ending_stage import wait_for_ending
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, read_intent
from clusterctl.lifecycle.node_stage import NodeStage
from clusterctl.lifecycle.opening import Held, open_change_of
from clusterctl.lifecycle.reservation import forget_ended, reserved_or_not
from clusterctl.lifecycle.running_jobs import refuse_running
from clusterctl.lifecycle.stopped import empty_places_bill, noting_what_exists, stopped_text
from clusterctl.lifecycle.unknown_machines import preview_unknown
from clusterctl.lifecycle.up_runs import run_until_places_are_free
from clusterctl.lifecycle.whole_cluster import refuse_no_way_out
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
    is_forced: bool = False
    """`--force`: though a job runs there."""


def replace_node(request: ReplaceRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Replaces the machine. Raises the error that a person should see when the slot then has no ready machine."""
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
    change, slot = held.change, request.slot
    planned = checked_plan(request, held, now=now())
    ask(request, change, is_spot=planned.plan.price.spot is not None)
    wait_for_ending(change, planned.state, again=replace_slot(change.cluster, slot))
    state = change.repair_state(planned.state, was_cut_off=held.was_cut_off)
    replacement = replacement_in(state, planned, slot)
    if replacement.is_gone:  # the provider would cancel its request, which AWS has deleted by then
        change.engine.refresh([replacement.targets[0]])
    reserved = forget_ended(change, state)
    # A reservation is no target of this run: where there is none, none is made, not even for a single node.
    intent = reserved_or_not(planned.intent, reserved, stays=[instance.slot for instance in state.instances])
    display = Display(change.output)
    stage = NodeStage(
        change,
        intent.config,
        planned.plan,
        display,
        waits=change.has_machines,
        gone=instances_in(state, slot),
        slots=frozenset({slot}),
    )
    with stage.watching():
        result = run_engine_on(replacement, change, intent, display, stage, sleep=sleep)
        if not result.succeeded:
            raise_failed(change, result, intent, slot=slot)
        change.finish()
        change.output.note(f" {summary(result.changes)}")
        with noting_what_exists(change, shown=planned.shown):
            unproven = try_deadline(change, slots={slot})
        stage.finish(timeout_s=request.ready_timeout_s)
    if unproven is not None:
        raise unproven


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """The replacement of one node's machine, as the engine carries it out."""

    targets: tuple[str, ...]
    """URNs, the instance's first."""
    is_gone: bool
    """Whether AWS no longer has the machine."""
    nodes: int
    """How many nodes there are: another number in the config waits for an `up`."""


def checked_plan(request: ReplaceRequest, held: Held, *, now: datetime) -> WithPlan:
    """The plan that the slot's machine is made from, once it has passed all checks. Raises ClusterctlError."""
    change, found = held.change, held.state
    shown = change.typed(change.stack.directory)
    read = WithState(stack=change.stack, state=found, shown=shown, now=now, held=change, slot=request.slot)
    run_checks("replace", read)
    written = read_intent(
        change.stack,
        read_config(change.engine.environment.config_file),
        nodes=len(found.instances),
        fresh_prices=change.home.prices_file,
    )
    intent = for_up(written, found, change.seen(found))
    planned = WithPlan(**vars(read), intent=intent, plan=plan_of(intent, found, now=now))
    run_checks("replace", planned, after=WithState)
    preview_unknown(change, found)
    run_checks("replace", WithPreview(**vars(planned), makes_machines=True), after=WithPlan)
    again = replace_slot(change.cluster, request.slot)
    refuse_running(change, found, {request.slot}, is_forced=request.is_forced, again=again)
    return planned


def replacement_in(state: StackState, planned: WithPlan, slot: int) -> Replacement:
    """What the engine is told to do with the repaired state. Raises EngineError, CloudError."""
    targets = slot_targets(state, slot, shown=planned.shown)
    lost = lost_ways_out(planned.clients, state)
    refuse_no_way_out(lost, cluster=planned.change.cluster, shown=planned.shown)
    is_gone = targets[0] in gone_spot_machines(planned.clients, state)
    return Replacement(targets=targets, is_gone=is_gone, nodes=len(state.instances))


def run_engine_on(
    replacement: Replacement,
    change: Change,
    intent: Intent,
    display: Display,
    stage: NodeStage,
    *,
    sleep: Callable[[float], None],
) -> RunResult:
    """Runs the engine on these targets alone; returns how it ended. Raises EngineError when it did not start."""
    config_file = change.engine.environment.config_file
    # An `extend` that was cut off stays unfinished: the schedule is not among the targets.
    kept = {key: value for key, value in intent.changes.items() if key not in (*SIZE_KEYS, "extended-from")}
    write_config(config_file, with_values(read_config(config_file), kept))
    replaced = [] if replacement.is_gone else [f"--replace={replacement.targets[0]}"]
    text = with_values(read_config(config_file), intent.changes)
    with config_of_one_run(config_file, text, why="replace") as temporary:
        # AWS may count the place of the machine that it has just ended as taken for a while.
        run = partial(
            change.run,
            "up",
            nodes=replacement.nodes,
            display=display,
            on_event=stage.event,
            options=[*replaced, *(f"--target={urn}" for urn in replacement.targets)],
            config_file=temporary,
        )
        return run_until_places_are_free(run, change, sleep=sleep)


def raise_failed(change: Change, result: RunResult, intent: Intent, *, slot: int) -> NoReturn:
    """Raises what a failed run means. A failed replacement is not rolled back: the others run on."""
    shown = change.typed(change.stack.directory)
    if result.interrupted:
        change.output.note(stopped_text(change, result, shown=shown))
        raise KeyboardInterrupt
    after = change.engine.export() or StackState()
    more, hint = what_is_left(after, slot), f"clusterctl up {shown}"
    if (helps := spot_help(result, intent, source=change.stack.source, is_new=False)) is not None:
        more, hint = f"{helps.sentence} {more}", helps.hint or hint
    raise change.failure(result, doing=f"replacing slot {slot}", more=more, hint=hint)


def ask(request: ReplaceRequest, change: Change, *, is_spot: bool) -> None:
    """Returns once the person agrees to lose what is on the machine's disks; a rehearsal does not ask.

    Raises UsageError.
    """
    if change.is_rehearsal or request.is_agreed:
        return
    node = next((node for node in request.inventory.nodes if node.slot == request.slot), None)
    name = f"slot {request.slot}" if node is None else f"{node.name} ({node.instance_id})"
    risk = " Its place is not reserved: AWS may have no spot machine to put there." if is_spot else ""
    if not change.output.confirm(f"Replace the machine of {name}? The data on its disks is lost.{risk}"):
        again = replace_slot(request.inventory.cluster, request.slot)
        raise UsageError("not agreed, nothing was changed", hint=f"{again} --yes")


def instances_in(state: StackState, slot: int) -> tuple[str, ...]:
    """The id of the instance that the state has in a slot; empty if it has none."""
    return tuple(instance.instance_id for instance in state.instances if instance.slot == slot)


def what_is_left(state: StackState, slot: int) -> str:
    """The sentence about the slot, and about the others, after a failed replacement."""
    slots = {machine.slot for machine in state.machines}
    left = "its machine runs on" if slot in slots else "it has no machine now"
    left += f", and {empty_places_bill(state.empty_places)}" if state.empty_places else ""
    return f"Slot {slot}: {left}; the others run on." if slots - {slot} else f"Slot {slot}: {left}."


def slot_targets(state: StackState, slot: int, *, shown: str) -> tuple[str, ...]:
    """The URNs that a replacement touches, the instance's first. Raises EngineError when the slot has no machine."""
    found = next((machine for machine in state.instances if machine.slot == slot), None)
    if found is None:
        raise EngineError(f"slot {slot} has no machine to replace", hint=f"clusterctl up {shown}")
    instance = next(resource for resource in state.of_type(INSTANCE_TYPE) if resource.urn == found.urn)
    template = (instance.inputs.get("launchTemplate") or {}).get("id")
    parts = [resource.urn for resource in state.resources if resource.id == template or _is_address_of(resource, slot)]
    own = [
        resource.urn for type in (IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE) for resource in state.of_type(type)
    ]
    return (found.urn, *parts, *own)


def _is_address_of(resource: StateResource, slot: int) -> bool:
    tags = resource.inputs.get("tags") or {}
    return resource.type == EIP_TYPE and tags.get(SLOT_TAG) == str(slot)
