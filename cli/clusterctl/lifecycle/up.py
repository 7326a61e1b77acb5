"""`clusterctl up`: creates or updates a cluster, and waits until every node is ready and has the membership."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime

from clusterctl_infra.outputs import read_inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.capacity_trial import Candidate
from clusterctl.engine.progress import summary
from clusterctl.engine.region import tell_region
from clusterctl.engine.selected_stack import selected_meanwhile
from clusterctl.engine.size_note import size_note
from clusterctl.engine.stack import read_stack
from clusterctl.engine.stack_config import read_config, with_values
from clusterctl.engine.stack_plan import ends_line, size_source
from clusterctl.engine.state import StackState
from clusterctl.home import home_directory
from clusterctl.lifecycle.adopt import adopt
from clusterctl.lifecycle.block_stage import bought, look_for_block, plan_time
from clusterctl.lifecycle.capacity_stage import candidates_of, capacity_words, chosen
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithFolder, WithIntent, WithPlan, WithPreview
from clusterctl.lifecycle.checks.table import run_checks, run_checks_of_time
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.drift import living_slots, lost_beside, missing_instances
from clusterctl.lifecycle.ending_stage import wait_for_ending
from clusterctl.lifecycle.failed_nodes import REPLACE_FAILED, Asking, FailedNode, agreed_to, failed_nodes
from clusterctl.lifecycle.failed_up import raise_failed
from clusterctl.lifecycle.intent import (
    Intent,
    for_up,
    plan_of,
    with_changes,
    without_extended_settings,
)
from clusterctl.lifecycle.node_stage import NodeStage
from clusterctl.lifecycle.opening import inspect, open_change
from clusterctl.lifecycle.preview import NodePreview, ended, late, late_lines, made_anew, made_anew_lines, slots_of
from clusterctl.lifecycle.price_age import with_todays_prices
from clusterctl.lifecycle.rank_order import is_wanted, order_ranks
from clusterctl.lifecycle.readiness import Watches
from clusterctl.lifecycle.reservation import forget_ended, reserved_or_not
from clusterctl.lifecycle.running_jobs import refuse_running
from clusterctl.lifecycle.spend_gate import agree
from clusterctl.lifecycle.spot_checks import makes_spot_machines
from clusterctl.lifecycle.stopped import noting_what_exists
from clusterctl.lifecycle.unknown_machines import preview_unknown
from clusterctl.lifecycle.up_request import UpRequest, naming_the_flag, read_written
from clusterctl.lifecycle.up_runs import Runs, run_up, runs_for
from clusterctl.lifecycle.up_words import headline, price_question, warning_lines
from clusterctl.output import Output, unshown_by
from clusterctl.status.nodes_table import nodes_json
from clusterctl.text.instant import utc_now


@dataclass(frozen=True, kw_only=True)
class Up:
    """One `up` on a held stack."""

    request: UpRequest
    change: Change
    was_cut_off: bool
    shown: str
    """The stack as it was typed."""
    size_note: str | None
    """The line about a size that the file does not say."""

    @property
    def again(self) -> str:
        """The command line that asks for this `up` once more, with its size."""
        return f"clusterctl up {self.shown}" + ("" if self.request.nodes is None else f" --nodes {self.request.nodes}")


def bring_up(request: UpRequest, output: Output, environ: Mapping[str, str]) -> None:
    """Brings the stack up. Raises the error that a person should see when anything is not as asked."""
    home = home_directory(environ)
    stack = read_stack(request.stack_dir, name=request.stack_name, rehearse=request.rehearse)
    run_checks("up", WithFolder(stack=stack, home=home))
    written = read_written(request, stack, home)
    with open_change(
        "up",
        stack,
        name=written.intent.config.name,
        region=written.intent.config.region,
        rehearse=request.rehearse,
        home=home,
        environ=environ,
        output=output,
    ) as change:
        state, was_cut_off = inspect(change)
        shown = change.typed(request.stack_dir)
        note = size_note(
            written.size_settings,
            in_file=written.size_in_file,
            source=stack.source,
            config=stack.config_file.name,
            shown=shown,
        )
        up = Up(request=request, change=change, was_cut_off=was_cut_off, shown=shown, size_note=note)
        bring_up_held(up, written.intent, state)


def bring_up_held(up: Up, written: Intent, found: StackState | None) -> None:
    """Brings up a stack that this process holds already: checks, preview, question, repair, engine, nodes."""
    planned = plan_up(up, written, found or StackState())
    with naming_the_flag(up.request.nodes):
        run_checks("up", planned, after=WithIntent)
    anew = show_preview(up, planned)
    makes_machines = makes_spot_machines(up.change.clients, planned.plan, planned.state, anew=slots_of(anew))
    previewed = WithPreview(**vars(planned), anew=len(anew), makes_machines=makes_machines)
    run_checks("up", previewed, after=WithPlan)
    preview_unknown(up.change, planned.state)
    refuse_running_jobs(up, planned, anew=slots_of(anew))
    failed = failed_to_replace(up, planned, anew=slots_of(anew))
    if ask(up, replace(previewed, anew=len(anew) + len(failed))):
        with naming_the_flag(up.request.nodes):
            run_checks_of_time("up", planned_now(planned))
    replaced = slots_of(anew) | {node.slot for node in failed}
    up.change.provide_plugin()
    planned = bought(up.change, planned, up.request)
    if found is None:
        living = planned.state
        planned = choose(up, planned)
        up.change.engine.create_stack()
    else:
        living, intent = repair(up, planned, anew=replaced)
        planned = choose(up, replace(planned, intent=intent))
    runs = runs_for(living, planned.plan, anew=sorted(replaced), failed=[node.instance_id for node in failed])
    with selecting(up.change, is_new=found is None):
        make(up, planned, runs=runs)


def selecting(change: Change, *, is_new: bool) -> AbstractContextManager[None]:
    """Makes plain `pulumi` use a new rehearsed stack while it is made; what a person selects later stays selected."""
    if not (is_new and change.is_rehearsal):
        return contextlib.nullcontext()
    return selected_meanwhile(change.engine, change.environ)


def plan_up(up: Up, written: Intent, state: StackState) -> WithPlan:
    """The intent for this state and for existing resources, with its plan. Raises ConfigError, CloudError."""
    change, now = up.change, utc_now()
    if state.cluster_id is None:
        written = without_extended_settings(written, change.stack, fresh_prices=change.home.prices_file)
    asked = WithIntent(
        stack=change.stack,
        state=state,
        shown=up.shown,
        now=now,
        held=change,
        intent=for_up(written, state, change.seen(state)),
        reorders_ranks=up.request.reorders_ranks,
    )
    run_checks("up", asked)
    sought = look_for_block(change, with_account(change.clients, asked.intent), state, now=now)
    adopted = adopt(change, sought.intent, state, now=now, offered=sought.adopted)
    intent = with_todays_prices(change, adopted, state, now=now)

    def before() -> None:
        if change.is_rehearsal:  # the region's zones are those that rehearsal.yaml names
            tell_region(change.home, change.environ, change.stack.directory, cluster=change.name)

    candidates = candidates_of(change.clients, intent, state, source=change.stack.source, before=before)
    planned = plan_of(intent, state, now=plan_time(sought.offering, now))
    return WithPlan(**{**vars(asked), "intent": intent}, plan=planned, candidates=candidates, offering=sought.offering)


def choose(up: Up, planned: WithPlan) -> WithPlan:
    """The plan, with the type and zone that AWS has capacity for. Raises NoCapacity, CloudError."""
    decided = chosen(up.change, planned)
    if decided.plan.instance_type != planned.plan.instance_type:  # the earlier checks were for the most expensive one
        run_checks("up", WithPreview(**vars(decided), makes_machines=True), after=WithIntent)
    return decided


def planned_now(planned: WithPlan) -> WithPlan:
    """The plan, made again for the present time: the person may have taken until after the deadline to answer."""
    now = utc_now()
    begins = plan_time(planned.offering, now)
    return replace(planned, now=now, plan=plan_of(planned.intent, planned.state, now=begins))


def with_account(clients: Clients, intent: Intent) -> Intent:
    """The intent with the account of the credentials: the provider will work in no other account."""
    return with_changes(intent, {"account": clients.account()})


def show_preview(up: Up, planned: WithPlan) -> tuple[NodePreview, ...]:
    """Shows what will be made, and what happens to running machines. Returns the machines that will be replaced."""
    output, is_rehearsal = up.change.output, up.change.is_rehearsal
    output.note(headline(planned.plan, is_rehearsal=is_rehearsal))
    for line in warning_lines(planned.plan, overrides=planned.intent.settings.overrides):
        output.note(line)
    anew = made_anew(planned.state, planned.intent.config, planned.plan)
    for line in preview_lines(up, planned, anew):
        output.note(line)
    return anew


def refuse_running_jobs(up: Up, planned: WithPlan, *, anew: frozenset[int]) -> None:
    """Raises UsageError if jobs run on nodes that a smaller size ends, or that are made anew."""
    stays = {slot.slot for slot in planned.plan.slots} - anew
    going = {instance.slot for instance in planned.state.instances} - stays
    refuse_running(up.change, planned.state, going, is_forced=up.request.is_forced, again=up.again)


def failed_to_replace(up: Up, planned: WithPlan, *, anew: frozenset[int]) -> tuple[FailedNode, ...]:
    """The nodes that failed and that somebody agrees to replace; nodes that are replaced anyway are not asked about."""
    request, change = up.request, up.change
    stay = {slot.slot for slot in planned.plan.slots} - anew
    failed = failed_nodes(change, planned.state, stay)
    asking = Asking(
        agrees_by_flag=request.replaces_failed,
        may_ask=not (request.is_agreed or request.as_json),
        again=f"{up.again} {REPLACE_FAILED}",
    )
    return agreed_to(failed, planned.plan, asking, change.output, cluster=change.cluster)


def preview_lines(up: Up, planned: WithPlan, anew: Sequence[NodePreview]) -> Iterator[str]:
    """The lines about the cluster's size, and about what happens to machines that run."""
    if up.size_note is not None:
        yield f"  size     {up.size_note}"
    source = size_source(
        source=planned.source,
        stack_name=planned.stack.name,
        overrides=planned.intent.settings.overrides,
        is_flag=up.request.nodes is not None,
    )
    going = ends_line(ended(planned.state, planned.plan), nodes=len(planned.plan.slots), source=source)
    if going is not None:
        yield f"  ends     {going}"
    for line in made_anew_lines(anew, is_reserved=planned.plan.price.is_reserved):
        yield f"  replace  {line}"
    for line in late_lines(late(planned.state, planned.plan, except_slots=slots_of(anew))):
        yield f"  later    {line}"


def ask(up: Up, previewed: WithPreview) -> bool:
    """Whether a person was asked and agreed to the price; a rehearsal costs nothing, and asks only when told to."""
    request, change = up.request, up.change
    asks = request.asks_in_rehearsal or not change.is_rehearsal
    if request.is_agreed or not asks:
        return False
    cluster_plan, now = previewed.plan, plan_time(previewed.offering, previewed.now)
    agree(
        change.output,
        cluster_plan,
        question=question_of(
            change.clients,
            cluster_plan,
            previewed.state,
            anew=previewed.anew,
            now=now,
            candidates=previewed.candidates,
        ),
        now=now,
        shown=up.shown,
        again=up.again,
        asks=not request.as_json,
        agreed_by=request.agreed_by,
    )
    request.on_agreed()
    return True


def repair(up: Up, planned: WithPlan, *, anew: frozenset[int]) -> tuple[StackState, Intent]:
    """The state after the repair, without what AWS no longer has; and the intent, with a reservation if there is
    one.
    """
    change, nodes = up.change, len(planned.plan.slots)
    wait_for_ending(change, planned.state, again=f"clusterctl up {up.shown}")
    state = change.repair_state(planned.state, was_cut_off=up.was_cut_off)
    living = forget_missing(change, state, nodes=nodes, was_cut_off=up.was_cut_off)
    stays = {instance.slot for instance in living.instances if instance.slot < nodes} - anew
    return living, reserved_or_not(planned.intent, living, stays=stays)


def forget_missing(change: Change, state: StackState, *, nodes: int, was_cut_off: bool) -> StackState:
    """The state without the instances that AWS no longer has, so that only their slots are remade."""
    missing = missing_instances(change.clients, state, tell=change.tell)
    for instance in missing:
        change.tell(instance.line(nodes=nodes))
    gone = [instance.known.urn for instance in missing]
    # A `down` that was cut off ends addresses before their machines; a way out may be gone where no machine is left.
    if gone or was_cut_off or not state.instances:
        gone += [part.urn for part in lost_beside(change.clients, state)]
    if gone:
        change.engine.refresh(gone)
    return forget_ended(change, state.without(gone))


def make(up: Up, planned: WithPlan, *, runs: Runs, watches: Watches | None = None) -> None:
    """Runs the engine, and waits for the nodes. Raises the error of what failed, after undoing it.

    `watches`: how the nodes are watched; None: by SSH.
    """
    change, cluster_plan, intent = up.change, planned.plan, planned.intent
    # Kept even if this run fails: they say of what kind the staying machines are, and whether these have a reservation.
    stays = ("unreserved", "chosen", "layout") if planned.state.instances else ("unreserved",)
    kept = {key: value for key, value in intent.changes.items() if key in stays}
    before = with_values(read_config(change.engine.environment.config_file), kept)
    display = Display(change.output)
    stage = NodeStage(
        change, intent.config, cluster_plan, display, waits=change.has_machines, gone=runs.failed, watches=watches
    )
    with stage.watching():
        nodes = max(len(cluster_plan.slots), len(planned.state.instances))
        text = with_values(before, intent.changes)
        ran = run_up(change, text, display=display, on_event=stage.event, nodes=nodes, runs=runs)
        if not ran.result.succeeded:
            stage.stop()
            raise_failed(change, ran, before_text=before, before_state=planned.state, intent=intent, shown=up.shown)
        change.output.note(f" {summary(ran.result.changes)}")
        with noting_what_exists(change, shown=up.shown):
            if is_wanted(intent, is_asked=up.request.reorders_ranks):
                order_ranks(change, cluster_plan, shown=up.shown)
            change.finish()
            unproven = try_deadline(change)
        try:
            stage.finish(timeout_s=up.request.ready_timeout_s)
        finally:
            unshown = tell_program(change) if up.request.as_json else None
    failed = unproven or unshown
    if failed is not None:
        raise failed


def tell_program(change: Change) -> Exception | None:
    """Prints the nodes as JSON. Returns the error of stdout, as an error of the nodes has to be raised before it."""
    inventory = change.home.inventory_file(change.cluster)
    return unshown_by(lambda: change.output.json(nodes_json(read_inventory(inventory))))


def question_of(
    clients: Clients,
    cluster_plan: ClusterPlan,
    state: StackState,
    *,
    anew: int,
    now: datetime,
    candidates: Sequence[Candidate] = (),
) -> str:
    """What a person agrees to; a machine that died or was taken back does not run, though the state has it.

    Raises CloudError.
    """
    running = len(living_slots(clients, state))
    asking = capacity_words(candidates, cluster_plan)
    return price_question(cluster_plan, running=running, anew=anew, now=now, asking=asking)
