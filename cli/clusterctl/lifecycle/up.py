"""`clusterctl up`: makes a stack true, and waits until every node is ready and has the membership."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.flag_size import size_in_file, typed_size
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.outputs import read_inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.clock import refuse_wrong_clock
from clusterctl.engine.progress import summary
from clusterctl.engine.region import machine_kind
from clusterctl.engine.size_note import size_note
from clusterctl.engine.stack import read_stack, refuse_without_program
from clusterctl.engine.stack_config import config_values, own_config, read_config, with_values
from clusterctl.engine.stack_plan import config_folder, ends_line, judged_for_aws, size_said_in
from clusterctl.engine.state import StackState
from clusterctl.home import home_directory
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.cluster_name import refuse_other_name, refuse_renamed_project
from clusterctl.lifecycle.data import refuse_harm
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.drift import living_slots, lost_beside, missing_instances
from clusterctl.lifecycle.ending_stage import wait_for_ending
from clusterctl.lifecycle.failed_up import raise_failed
from clusterctl.lifecycle.fixed_at_birth import refuse_other_launch, refuse_other_network
from clusterctl.lifecycle.intent import Intent, for_up, of_a_new_life, plan_of, read_intent, refuse
from clusterctl.lifecycle.node_stage import NodeStage
from clusterctl.lifecycle.opening import open_change
from clusterctl.lifecycle.preview import NodePreview, ended, late, late_lines, made_anew, made_anew_lines
from clusterctl.lifecycle.rank_order import is_wanted, order_ranks, refuse_reorder
from clusterctl.lifecycle.reservation import forget_ended, reserved_or_not
from clusterctl.lifecycle.spend_gate import agree, spending
from clusterctl.lifecycle.spot_checks import refuse_below_spot_price, refuse_without_rights
from clusterctl.lifecycle.stopped import telling_if_stopped
from clusterctl.lifecycle.unknown_machines import foretell_unknown
from clusterctl.lifecycle.up_checks import (
    refuse_namesake,
    refuse_reaped,
    refuse_unreachable,
    refuse_without_addresses,
    refuse_without_vcpus,
)
from clusterctl.lifecycle.up_runs import Runs, run_up, runs_for
from clusterctl.output import Output, unshown_by
from clusterctl.status.nodes_table import nodes_json
from clusterctl.text.headline import machine_words, machines_and_gpus, rehearsed
from clusterctl.text.quantities import clock, duration, usd


@dataclass(frozen=True, kw_only=True)
class UpRequest:
    """What a person asked for."""

    stack_dir: Path
    stack_name: str
    rehearse: bool
    nodes: int | None
    is_agreed: bool
    """`--yes`."""
    ready_timeout_s: float | None
    reorders_ranks: bool = False
    """`--reorder-ranks`: the order that was made once is made anew."""
    asks_in_rehearsal: bool = False
    """`--ask`: the questions of AWS, to see them."""
    as_json: bool = False
    """A program reads stdout: nobody is asked, and the nodes come as JSON at the end."""


def bring_up(request: UpRequest, output: Output, environ: Mapping[str, str]) -> None:
    """Brings the stack up. Raises the error that a person should see when anything is not as asked."""
    home = home_directory(environ)
    stack = read_stack(request.stack_dir, name=request.stack_name, rehearse=request.rehearse)
    refuse_without_program(stack)
    folder = config_folder(stack, home=home, rehearse=request.rehearse)
    config_text = own_config(folder / stack.config_file.name, written_for=stack.config_file)
    values, in_file = config_values(config_text), size_in_file(stack.cluster_file)
    size = typed_size(values, request.nodes, in_file=in_file)
    with said_of_the_flag(request.nodes):
        intent = read_intent(
            stack,
            config_text,
            nodes=None,
            given=size,
            fresh_prices=home.prices_file,
            is_rehearsal=request.rehearse or stack.is_rehearsal_project,
        )
    with open_change(
        "up",
        stack,
        name=intent.config.name,
        region=intent.config.region,
        rehearse=request.rehearse,
        home=home,
        environ=environ,
        output=output,
    ) as change:
        state, was_cut_off = change.inspect()
        told = values if request.nodes is None else {key: text for key, text in {**values, **size}.items() if text}
        note = size_note(
            told,
            in_file=in_file,
            source=stack.source,
            config=stack.config_file.name,
            shown=change.typed(request.stack_dir),
        )
        _Up(request, change, intent, was_cut_off=was_cut_off, size_note=note).run(state)


class _Up:
    """One `up` on a held stack."""

    def __init__(
        self, request: UpRequest, change: Change, intent: Intent, *, was_cut_off: bool, size_note: str | None
    ) -> None:
        self._request = request
        self._change = change
        self._output = change.output
        self._written = intent
        self._was_cut_off = was_cut_off
        self._size_note = size_note
        self._now = datetime.now(UTC).replace(microsecond=0)
        self._shown = change.typed(request.stack_dir)

    def run(self, found: StackState | None) -> None:
        change, source = self._change, self._change.stack.source
        state = found or StackState()
        if state.cluster_id is None:
            prices = change.home.prices_file
            self._written = of_a_new_life(self._written, change.stack, fresh_prices=prices)
        self._refuse_as_written(state, source=source)
        intent = for_up(self._written, state, change.seen(state))
        cluster_plan = plan_of(intent, state, now=self._now)
        refuse_other_launch(state, cluster_plan, source=source, shown=self._shown)
        self._refuse(intent, cluster_plan, now=self._now)
        refuse_wrong_clock(change.clients)
        refuse_namesake(change, state)
        refuse_reaped(change, state, shown=self._shown)
        refuse_unreachable(change, intent.config, cluster_plan)
        self._output.note(headline(cluster_plan, is_rehearsal=change.is_rehearsal))
        self._warn(cluster_plan)
        anew = made_anew(state, intent.config, cluster_plan)
        self._foretell(intent, cluster_plan, state, anew)
        self._ask_spot_market(cluster_plan, state, anew)
        refuse_without_addresses(change, cluster_plan, state)
        refuse_without_vcpus(change, intent, state, anew=len(anew))
        foretell_unknown(change, state)
        if self._ask(cluster_plan, state, anew=len(anew)):
            # Whoever was asked may have thought about it until after the deadline.
            now = datetime.now(UTC).replace(microsecond=0)
            self._refuse(intent, plan_of(intent, state, now=now), now=now)
        living = state
        if found is None:
            change.engine.create_stack()
        else:
            wait_for_ending(change, state, again=f"clusterctl up {self._shown}")
            state = change.mend(state, was_cut_off=self._was_cut_off)
            slots = len(cluster_plan.slots)
            living = self._forget_missing(state, nodes=slots)
            stays = {one.slot for one in living.instances if one.slot < slots} - {one.slot for one in anew}
            intent = reserved_or_not(intent, living, stays=stays)
        runs = runs_for(living, cluster_plan, anew=tuple(one.slot for one in anew))
        self._make(intent, cluster_plan, state, runs=runs)

    def _refuse_as_written(self, state: StackState, *, source: str) -> None:
        """What cluster.yaml says of a living cluster, and no plan is needed to see. Raises ConfigError, UsageError."""
        config = self._written.config
        if state.cluster_id is None:
            refuse_renamed_project(self._change)
        refuse_other_name(self._change, state, config.name)
        refuse_harm(state, config, load_catalog(), source=source)
        refuse_other_network(state, config, source=source, shown=self._shown)
        if self._request.reorders_ranks:
            refuse_reorder(self._written, source=source)

    def _ask_spot_market(self, cluster_plan: ClusterPlan, state: StackState, anew: Sequence[NodePreview]) -> None:
        """Where a spot machine is about to be asked for, also for a slot that AWS took back. Raises CapExceeded."""
        change = self._change
        if cluster_plan.price.spot is None:
            return
        stays = living_slots(change.clients, state) - {one.slot for one in anew}
        if all(slot.slot in stays for slot in cluster_plan.slots):
            return
        refuse_without_rights(change.clients, cluster_plan)
        source, tell = change.stack.source, self._output.note
        refuse_below_spot_price(change.clients, cluster_plan, now=self._now, source=source, tell=tell)

    def _make(self, intent: Intent, cluster_plan: ClusterPlan, state: StackState, *, runs: Runs) -> None:
        change = self._change
        # Whatever becomes of this run: the machines that stay have a reservation, or none.
        kept = {key: value for key, value in intent.changes.items() if key == "unreserved"}
        before = with_values(read_config(change.engine.environment.config_file), kept)
        display = Display(self._output)
        stage = NodeStage(change, intent.config, cluster_plan, display, waits=self._waits())
        with stage.watching():
            nodes = max(len(cluster_plan.slots), len(state.instances))
            text = with_values(before, intent.changes)
            ran = run_up(change, text, display=display, on_event=stage.event, nodes=nodes, runs=runs)
            if not ran.result.succeeded:
                stage.stop()
                raise_failed(change, ran, before_text=before, before_state=state, intent=intent, shown=self._shown)
            self._output.note(f" {summary(ran.result.changes)}")
            with telling_if_stopped(change, shown=self._shown):
                if is_wanted(intent, is_asked=self._request.reorders_ranks):
                    order_ranks(change, cluster_plan, shown=self._shown)
                change.finish()
                unproven = try_deadline(change)
            try:
                stage.finish(timeout_s=self._request.ready_timeout_s)
            finally:
                unshown = self._tell_program()
        failed = unproven or unshown
        if failed is not None:
            raise failed

    def _tell_program(self) -> Exception | None:
        """Why stdout did not take it: what is wrong with the nodes is said first."""
        inventory = self._change.home.inventory_file(self._change.cluster)
        if not self._request.as_json:
            return None
        return unshown_by(lambda: self._output.json(nodes_json(read_inventory(inventory))))

    def _forget_missing(self, state: StackState, *, nodes: int) -> StackState:
        """The state without the instances that AWS has no more, so that their slots alone are remade."""
        missing = missing_instances(self._change.clients, state, tell=self._change.tell)
        for one in missing:
            self._change.tell(one.told(nodes=nodes))
        gone = [one.known.urn for one in missing]
        if gone or self._was_cut_off:  # a `down` that was cut off ends addresses before their machines
            gone += [one.urn for one in lost_beside(self._change.clients, state)]
        if gone:
            self._change.engine.refresh(gone)
        return forget_ended(self._change, state.without(gone))

    def _foretell(
        self, intent: Intent, cluster_plan: ClusterPlan, state: StackState, anew: Sequence[NodePreview]
    ) -> None:
        """Says what happens to machines that run, before anybody is asked."""
        stack = self._change.stack
        if self._size_note is not None:
            self._output.note(f"  size     {self._size_note}")
        said_in = size_said_in(
            source=stack.source,
            stack_name=stack.name,
            overrides=intent.settings.overrides,
            is_flag=self._request.nodes is not None,
        )
        going = ends_line(ended(state, cluster_plan), nodes=len(cluster_plan.slots), said_in=said_in)
        if going is not None:
            self._output.note(f"  ends     {going}")
        waiting = late(state, cluster_plan, except_slots=(one.slot for one in anew))
        is_reserved = cluster_plan.price.spot is None
        for line in made_anew_lines(anew, is_reserved=is_reserved):
            self._output.note(f"  replace  {line}")
        for line in late_lines(waiting):
            self._output.note(f"  later    {line}")

    def _ask(self, cluster_plan: ClusterPlan, state: StackState, *, anew: int) -> bool:
        """On AWS somebody agrees to the price, and True says so; a rehearsal costs nothing, and asks when told to."""
        asks = self._request.asks_in_rehearsal or not self._change.is_rehearsal
        if self._request.is_agreed or not asks:
            return False
        agree(
            self._output,
            cluster_plan,
            question=question_of(self._change.clients, cluster_plan, state, anew=anew, now=self._now),
            now=self._now,
            shown=self._shown,
            asks=not self._request.as_json,
        )
        return True

    def _refuse(self, intent: Intent, cluster_plan: ClusterPlan, *, now: datetime) -> None:
        change, config_file = self._change, self._change.engine.environment.config_file
        if not change.is_rehearsal:
            cluster_plan = judged_for_aws(cluster_plan, intent.config)
        with said_of_the_flag(self._request.nodes):
            refuse(intent, cluster_plan, stack=change.stack, config_file=config_file, shown=self._shown, now=now)

    def _warn(self, cluster_plan: ClusterPlan) -> None:
        overrides = self._written.settings.overrides
        for problem in cluster_plan.problems:
            key = problem.path.rpartition(".")[2]
            said_in = f"config clusterctl:{key}" if key in overrides else problem.path
            self._output.note(f"  warning  {said_in}: {problem.message}".replace(" : ", " "))

    def _waits(self) -> bool:
        return not (self._change.is_rehearsal and machine_kind(self._change.stack.directory) == "none")


def question_of(clients: Clients, cluster_plan: ClusterPlan, state: StackState, *, anew: int, now: datetime) -> str:
    """What a person agrees to; a machine that died or was taken back does not run, though the state has it.

    Raises CloudError.
    """
    running = len(living_slots(clients, state))
    return price_question(cluster_plan, running=running, anew=anew, now=now)


FLAG = "--nodes"
AS_READ = "config clusterctl:nodes"


@contextlib.contextmanager
def said_of_the_flag(nodes: int | None) -> Iterator[None]:
    """Raises ConfigError with the flag's name where `nodes` were typed."""
    try:
        yield
    except ConfigError as e:
        if nodes is None:
            raise
        problems = [problem.replace(AS_READ, FLAG) for problem in e.problems]
        raise ConfigError(e.message, problems=problems, hint=e.hint) from e


def headline(cluster_plan: ClusterPlan, *, is_rehearsal: bool) -> str:
    """`train · us-west-2b · 4 × p5.48xlarge · 32 × H100 80GB (rehearsed: …)`."""
    zone = cluster_plan.chosen_zone or cluster_plan.region
    machines = machines_and_gpus(
        len(cluster_plan.slots), _machine(cluster_plan), cluster_plan.gpus_per_node, cluster_plan.gpu_name
    )
    label = rehearsed(is_rehearsal, cluster_plan.gpus_per_node > 0)
    return f"{cluster_plan.name} · {zone} · {machines}{label}"


def price_question(cluster_plan: ClusterPlan, *, running: int, now: datetime, anew: int = 0) -> str:
    """`This will run at $221.54/h until 17:22 UTC (4 h 31 m: $1000.00 in all). Create 4 × p5.48xlarge?`."""
    deadline, wanted = cluster_plan.deadline, len(cluster_plan.slots)
    total = spending(cluster_plan, now=now).until_deadline_usd
    budget = "" if deadline.budget_usd is None else f" of a budget of {usd(deadline.budget_usd)}"
    replaced = f", {anew} of them made anew" if anew else ""
    change = f"Change {running} → {wanted} nodes{replaced}?"
    what = change if running else f"Create {wanted} × {_machine(cluster_plan)}?"
    until = f"{clock(deadline.at, now)} ({duration(deadline.at - now)}: {usd(total)} in all{budget})"
    tail = cluster_plan.price.reservation_tail_usd
    after = "" if not tail else f", at worst {usd(tail)} more for a reservation that AWS ends up to 1 h late"
    rate = f"{usd(cluster_plan.price.total_usd_per_hour)}/h"
    most = f"{rate} at most" if cluster_plan.price.spot is not None else rate
    return f"This will run at {most} until {until}{after}. {what}"


def _machine(cluster_plan: ClusterPlan) -> str:
    return machine_words(cluster_plan.instance_type, cluster_plan.capacity)
