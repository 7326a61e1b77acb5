"""`clusterctl down`: ends a cluster's nodes, or all of it if it has no data; checks afterwards that nothing bills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import NoReturn

from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.delete_orphans import KnownNow
from clusterctl.cloud.resource import Known
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.extended_budget import BUDGET
from clusterctl.engine.known_clusters import inventory_here
from clusterctl.engine.progress import summary
from clusterctl.engine.purchase_file import paid_words
from clusterctl.engine.repair import state_at_rest
from clusterctl.engine.stack_config import config_values, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithIntent, WithState
from clusterctl.lifecycle.checks.table import run_checks
from clusterctl.lifecycle.cluster_name import held_cluster, refuse_other_stack
from clusterctl.lifecycle.data import data_in
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.down_preview import effect_of_down, show_preview, staying_lines, written_of
from clusterctl.lifecycle.end_by_tag import EndByTag, end_by_tag
from clusterctl.lifecycle.final_sum import final_sum_text, known_here
from clusterctl.lifecycle.intent import for_zero_nodes, without_own_values
from clusterctl.lifecycle.last_look import (
    billing,
    forget_cluster,
    forget_gone,
    forgotten,
    last_look,
    look_for,
    refuse_leftovers,
)
from clusterctl.lifecycle.opening import inspect, open_change_at
from clusterctl.lifecycle.running_jobs import keep_jobs, tell_running
from clusterctl.lifecycle.unknown_machines import preview_unknown
from clusterctl.lifecycle.up_runs import go_at_once
from clusterctl.output import Output
from clusterctl.system.disk_space import NoDiskSpace
from clusterctl.text.instant import utc_now
from clusterctl.text.next_commands import reap_cluster, reap_id
from clusterctl.text.quantities import usd

BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class DownRequest:
    """What a person asked for."""

    where: Whereabouts
    is_all: bool
    is_agreed: bool


def take_down(request: DownRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Takes the cluster down. Raises the error that a person should see when something is left that should not be."""
    is_under_way = False
    try:
        with open_change_at("down", request.where, home=home, environ=environ, output=output) as change:
            state, was_cut_off = inspect(change)
            is_under_way = True
            take_down_held(request, change, state, was_cut_off=was_cut_off)
    except (NoDiskSpace, OSError) as e:
        if is_under_way:
            raise
        end = EndByTag(where=request.where, is_agreed=request.is_agreed, again=typed_again(request), why=e)
        end_by_tag(end, output, home, environ)


def typed_again(request: DownRequest) -> str:
    """`clusterctl down …` as the person typed it."""
    return f"clusterctl down {request.where.shown}" + (" --all" if request.is_all else "")


def take_down_held(request: DownRequest, change: Change, found: StackState | None, *, was_cut_off: bool) -> None:
    """Takes down a cluster that this process holds already."""
    down = Down(request=request, change=change, was_cut_off=was_cut_off)
    if found is None or (found.is_empty and not found.pending):
        tell_nothing_there(down)
        return
    run_checks("down", read_state_of(down, found))
    effect = effect_of_down(change, found, is_all=request.is_all)
    if effect.keeps_data:
        run_checks("down", WithIntent(**vars(read_state_of(down, found)), intent=written_of(change)), after=WithState)
    show_preview(change, effect, region=request.where.region)
    preview_unknown(change, found)
    tell_running(change, found)
    ask(down)
    keep_jobs(change, found)
    state = change.repair_state(found, was_cut_off=was_cut_off)
    forget_gone(change, state)
    if effect.keeps_data:
        end_nodes(down, state)
    else:
        end_all(down, state)


@dataclass(frozen=True, kw_only=True)
class Down:
    """One `down` on a held stack."""

    request: DownRequest
    change: Change
    was_cut_off: bool

    @property
    def again(self) -> str:
        """The command, typed once more."""
        return typed_again(self.request)


def read_state_of(down: Down, state: StackState) -> WithState:
    """What checks may know once the state is read, before cluster.yaml is."""
    change = down.change
    return WithState(stack=change.stack, state=state, shown=down.request.where.shown, now=utc_now(), held=change)


def ask(down: Down) -> None:
    """Returns once the person has agreed, by --yes or when asked; a rehearsal does not ask. Raises UsageError."""
    change = down.change
    if change.is_rehearsal or down.request.is_agreed:
        return
    if not change.output.confirm("End this?"):
        raise UsageError("not agreed, nothing was changed", hint=f"{down.again} --yes")


def end_all(down: Down, state: StackState) -> None:
    """Ends everything, and checks that nothing bills. Raises EngineError, StillBills, CloudError."""
    change = down.change
    protected = [part.urn for part in state.resources if part.is_protected]
    if protected:
        change.engine.unprotect(protected)
    cluster = held_cluster(change, state)
    known = known_here(change.home, cluster, cluster_id=state.cluster_id)
    display = Display(change.output, is_ending=True)
    once = go_at_once(state)
    result = change.run("destroy", nodes=len(state.instances), display=display, writes_state_once=once)
    if not result.succeeded:
        raise_failed(down, result)
    if state.cluster_id is not None:
        since = BEFORE_ALL if down.request.is_all else None
        look_again(down, state.cluster_id, forgotten(state), data_since=since)
        # A killed `up` may have written inventory and key without noting it in the state.
        forget_cluster(change.home, cluster, cluster_id=state.cluster_id)
    clean_config(change)
    change.finish()
    change.output.note(f" {summary(result.changes)}")
    change.output.note(f"{cluster}: gone; nothing of it is left, nothing bills")
    tell_paid(change)
    if known is not None:
        tell_sum(change, known)


def end_nodes(down: Down, state: StackState) -> None:
    """Ends the nodes; network and storage stay. Raises EngineError, StillBills, CloudError."""
    change, config_file = down.change, down.change.engine.environment.config_file
    intent = for_zero_nodes(written_of(change), state, change.seen(state))
    write_config(config_file, with_values(read_config(config_file), intent.changes))
    display = Display(change.output, is_ending=True)
    result = change.run("up", nodes=len(state.instances), display=display, writes_state_once=go_at_once(state))
    if not result.succeeded:
        raise_failed(down, result)
    change.finish()
    change.output.note(f"{change.cluster}: no node runs; network and storage are kept")
    tell_staying(down, region=intent.config.region)
    tell_paid(change)
    shown = down.request.where.shown
    up = f"clusterctl up {change.typed(change.stack.directory)}"
    change.output.note(f"  next: {up} begins a new run; clusterctl down {shown} --all ends the data too")


def tell_staying(down: Down, *, region: str) -> None:
    """Shows what stays; then asks AWS, and ends what should not be left. Raises StillBills, CloudError."""
    change = down.change
    after = change.engine.export() or StackState()
    kept = tuple(data for data in data_in(after) if data.is_retained)
    for line in staying_lines(change, after, kept, region=region):
        change.output.note(f"  {line}")
    if after.cluster_id is not None:
        look_again(down, after.cluster_id, after, data_since=None, known_now=partial(known_now, change))
        change.output.note("  AWS was asked again: nothing else bills")


def known_now(change: Change) -> Known:
    """What the state holds at this moment, when no run of the engine is under way."""
    return state_at_rest(change.engine, change.tell).physical_ids


def look_again(
    down: Down,
    cluster_id: str,
    state: StackState,
    *,
    data_since: datetime | None,
    known_now: KnownNow | None = None,
) -> None:
    """Ends what carries the cluster's id and is not in the state, and checks that nothing else bills.

    Raises StillBills, CloudError.
    """
    change, region = down.change, down.request.where.region
    try:
        last_look(
            change.clients,
            cluster_id,
            state,
            data_since=data_since,
            tell=change.tell,
            agreed=change.note_agreed,
            again=down.again,
            known_now=known_now,
        )
    except KeyboardInterrupt:
        # The state may no longer have what is left.
        ends = reap_id(cluster_id, region=region, rehearse=change.is_rehearsal)
        change.output.note(f"stopped before AWS was asked what still bills, so something may.\n  next: {ends}")
        raise


def raise_failed(down: Down, result: RunResult) -> NoReturn:
    """Raises what a failed run of the engine means."""
    change, shown = down.change, down.request.where.shown
    if result.interrupted:
        change.output.note(f"stopped before everything was gone: what is left may bill.\n  next: {down.again}")
        raise KeyboardInterrupt
    raise change.failure(result, doing=f"ending {shown}", more="What is left may bill.", hint=down.again)


def tell_sum(change: Change, known: Inventory) -> None:
    """Says what the cluster has cost."""
    change.note_machines()  # when each ended, as AWS says
    cost = final_sum_text(change.home, known, now=datetime.now(UTC))
    if cost is not None:
        change.output.note(f"  {cost}")


def tell_nothing_there(down: Down) -> None:
    """Says that the stack holds nothing, once AWS was asked. Raises UsageError, StillBills, CloudError."""
    change = down.change
    known = inventory_here(change.home, change.cluster)
    if known is not None:
        refuse_unseen(change, known)
    change.finish()
    clean_config(change)
    change.output.note(f"{change.cluster}: nothing to end: its stack has no resources in this Pulumi backend")
    tell_paid(change)
    rehearsed = change.cluster + REHEARSAL_SUFFIX
    if not change.is_rehearsal and inventory_here(change.home, rehearsed) is not None:
        change.output.note(f"  {rehearsed} exists; to end that: clusterctl down --cluster {rehearsed}")
    if known is not None:  # it may live in another account, so `down` does not forget it
        where = f"in {known.region} of the account {change.clients.account()}"
        change.output.note(f"  nothing with the cluster's id {known.cluster_id} bills {where} either")
        change.output.note(f"  to make this computer forget it: clusterctl forget {change.cluster}")


def refuse_unseen(change: Change, known: Inventory) -> None:
    """Raises UsageError or StillBills if something of the cluster bills: its state may be in another backend.

    Raises CloudError.
    """
    seen = look_for(known, change.clients)
    if left := billing(seen):
        refuse_other_stack(change, known)
        backend = f"this Pulumi backend does not hold {change.cluster}'s state"
        change.output.note(f"{backend}. If it is elsewhere, `pulumi login` there")
    refuse_leftovers(left, not_listed=seen.not_listed, again=reap_cluster(known))


def tell_paid(change: Change) -> None:
    """Says which capacity block was bought for the cluster and outlives it."""
    file = change.home.purchase_file(change.cluster)
    line = paid_words(file, now=utc_now(), is_rehearsal=change.is_rehearsal)
    if line is not None:
        change.output.note(f"  {line}")


def clean_config(change: Change) -> None:
    """Removes from the stack's config what no person wrote, once the last resource is gone."""
    config_file = change.engine.environment.config_file
    text = read_config(config_file)
    cleaned = without_own_values(text)
    if cleaned != text:
        write_config(config_file, cleaned)
    budget = config_values(text).get(BUDGET)
    if budget is not None and config_values(cleaned).get(BUDGET) != budget:
        change.output.note(f"  the budget of {usd(float(budget))} that extend gave it went with it")
