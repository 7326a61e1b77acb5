"""`clusterctl down`: ends a cluster's nodes, and without data all of it; looks afterwards that nothing bills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.delete_orphans import KnownNow
from clusterctl.cloud.look import look_at_each, named
from clusterctl.cloud.resource import CloudResource, Known, orphans
from clusterctl.cloud.storage_resources import DATA_KINDS
from clusterctl.engine.extended_budget import BUDGET
from clusterctl.engine.progress import summary
from clusterctl.engine.repair import state_at_rest
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack import refuse_without_program
from clusterctl.engine.stack_config import config_values, read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.cluster_name import (
    held_cluster,
    refuse_other_name,
    refuse_other_stack,
    refuse_renamed_project,
    refuse_shared_project,
)
from clusterctl.lifecycle.data import StoredData, bill_lines, data_in, holds_data, kept_in, others_in, refuse_harm
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.end_by_tag import TagEnd, end_by_tag
from clusterctl.lifecycle.final_sum import inventory_here, known_here, told_sum
from clusterctl.lifecycle.fixed_at_birth import refuse_other_network, refuse_other_region
from clusterctl.lifecycle.intent import Intent, for_zero_nodes, read_intent, without_own_values
from clusterctl.lifecycle.last_look import (
    bill_of,
    billing,
    forget_cluster,
    forget_gone,
    forgotten,
    last_look,
    look_for,
    network_bill_lines,
    refuse_leftovers,
)
from clusterctl.lifecycle.opening import open_change_at
from clusterctl.lifecycle.unknown_machines import foretell_unknown
from clusterctl.lifecycle.up_runs import go_at_once
from clusterctl.output import Output
from clusterctl.system.room import NoRoom
from clusterctl.text.next_commands import reap_cluster, reap_id
from clusterctl.text.quantities import count, usd

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
            state, was_cut_off = change.inspect()
            is_under_way = True
            take_down_held(request, change, state, was_cut_off=was_cut_off)
    except (NoRoom, OSError) as e:
        if is_under_way:
            raise
        end = TagEnd(where=request.where, is_agreed=request.is_agreed, again=typed_again(request), why=e)
        end_by_tag(end, output, home, environ)


def typed_again(request: DownRequest) -> str:
    """`clusterctl down …` as the person typed it."""
    return f"clusterctl down {request.where.shown}" + (" --all" if request.is_all else "")


def take_down_held(request: DownRequest, change: Change, state: StackState | None, *, was_cut_off: bool) -> None:
    """Takes down a cluster that this process holds already."""
    _Down(request, change, was_cut_off=was_cut_off).run(state)


class _Down:
    """One `down` on a held stack."""

    def __init__(self, request: DownRequest, change: Change, *, was_cut_off: bool) -> None:
        self._request = request
        self._change = change
        self._output = change.output
        self._was_cut_off = was_cut_off

    def run(self, found: StackState | None) -> None:
        change = self._change
        if found is None or (found.is_empty and not found.pending):
            refuse_renamed_project(change)
            self._nothing()
            return
        refuse_shared_project(change, found, change.name)
        strays = () if self._request.is_all else stray_data(change.clients, found, tell=change.tell)
        for one in strays:
            self._change.tell(
                f"{one.kind} {one.id} is in no state and holds data: it is left, and bills {bill_of(one)}"
            )
        kept = () if self._request.is_all else self._kept(found)
        keeps_data = bool(kept or strays) or (not self._request.is_all and holds_data(found))
        if keeps_data:
            self._refuse_harm(found)
        self._output.note(self._what_goes(found, keeps_data=keeps_data, kept=kept))
        if keeps_data:
            for line in self._staying(found, kept, region=self._request.where.region):
                self._output.note(f"  stays    {line}")
        foretell_unknown(change, found)
        self._ask()
        state = change.mend(found, was_cut_off=self._was_cut_off)
        forget_gone(change, state)
        if keeps_data:
            self._to_zero(state)
        else:
            self._to_nothing(state)

    def _kept(self, state: StackState) -> tuple[StoredData, ...]:
        """The file systems that stay; a cluster whose file is broken now can be ended, by what the state says."""
        try:
            return kept_in(state, self._written().config, load_catalog())
        except ClusterctlError:
            return tuple(one for one in data_in(state) if one.is_retained)

    def _refuse_harm(self, state: StackState) -> None:
        """The program is run as it is written now. Raises ConfigError, UsageError."""
        refuse_without_program(self._change.stack)
        source, config = self._change.stack.source, self._written().config
        refuse_other_name(self._change, state, config.name)
        refuse_other_region(state, config.region, source=source)
        refuse_harm(state, config, load_catalog(), source=source)
        refuse_other_network(state, config, source=source, shown=self._request.where.shown)

    def _nothing(self) -> None:
        change = self._change
        known = inventory_here(change.home, change.cluster)
        if known is not None:
            self._refuse_unseen(known)
        change.finish()
        self._clean_config()
        self._output.note(f"{change.cluster}: there is nothing")
        if known is not None:  # its account may be another one: it is not for `down` to forget it
            where = f"in {known.region} of the account {change.clients.account()}"
            self._output.note(f"  in this Pulumi backend; nor does anything of {known.cluster_id} bill {where}")
            self._output.note(f"  to forget it on this computer, too: clusterctl forget {change.cluster}")

    def _refuse_unseen(self, known: Inventory) -> None:
        """A stack of another backend has no state here, and its machines run. Raises StillBills, CloudError."""
        change = self._change
        seen = look_for(known, change.clients)
        if left := billing(seen):
            refuse_other_stack(self._change, known)
            told = (
                f"this Pulumi backend does not hold {change.cluster}'s state. If it is elsewhere, `pulumi login` there"
            )
            self._output.note(told)
        refuse_leftovers(left, not_asked=seen.not_asked, again=reap_cluster(known))

    def _to_nothing(self, state: StackState) -> None:
        change = self._change
        protected = [one.urn for one in state.resources if one.is_protected]
        if protected:
            change.engine.unprotect(protected)
        cluster = held_cluster(change, state)
        known = known_here(change.home, cluster, cluster_id=state.cluster_id)
        display = Display(self._output, is_ending=True)
        once = go_at_once(state)
        result = change.run("destroy", nodes=len(state.instances), display=display, writes_state_once=once)
        if not result.succeeded:
            self._failed(result)
        self._last_look(state)
        if state.cluster_id is not None:  # a killed `up` may have written them and not come to say so in the state
            forget_cluster(change.home, cluster, cluster_id=state.cluster_id)
        self._clean_config()
        change.finish()
        self._output.note(f" {summary(result.changes)}")
        self._output.note(f"{cluster}: gone; nothing of it is left, nothing bills")
        if known is not None:
            self._tell_sum(known)

    def _tell_sum(self, known: Inventory) -> None:
        self._change.note_machines()  # when each ended, as AWS says
        told = told_sum(self._change.home, known, now=datetime.now(UTC))
        if told is not None:
            self._output.note(f"  {told}")

    def _to_zero(self, state: StackState) -> None:
        change, config_file = self._change, self._change.engine.environment.config_file
        intent = for_zero_nodes(self._written(), state, change.seen(state))
        write_config(config_file, with_values(read_config(config_file), intent.changes))
        display = Display(self._output, is_ending=True)
        result = change.run("up", nodes=len(state.instances), display=display, writes_state_once=go_at_once(state))
        if not result.succeeded:
            self._failed(result)
        change.finish()
        self._output.note(f"{change.cluster}: no node runs; network and storage are kept")
        self._tell_staying(intent.config.region)
        shown = self._request.where.shown
        up = f"clusterctl up {change.typed(change.stack.directory)}"
        self._output.note(f"  next: {up} begins a new run; clusterctl down {shown} --all ends the data too")

    def _tell_staying(self, region: str) -> None:
        """What the state and AWS say is left; what should not be is ended. Raises StillBills, CloudError."""
        after = self._change.engine.export() or StackState()
        kept = tuple(one for one in data_in(after) if one.is_retained)
        for line in self._staying(after, kept, region=region):
            self._output.note(f"  {line}")
        if after.cluster_id is not None:
            self._look(after.cluster_id, after, data_since=None, known_now=self._known_now)
            self._output.note("  AWS was asked again: nothing else bills")

    def _known_now(self) -> Known:
        return state_at_rest(self._change.engine, self._change.tell).physical_ids

    def _failed(self, result: RunResult) -> None:
        shown = self._request.where.shown
        if result.interrupted:
            self._output.note(f"stopped before everything was gone: what is left may bill.\n  next: {self._again()}")
            raise KeyboardInterrupt
        raise self._change.failure(result, doing=f"ending {shown}", more="What is left may bill.", hint=self._again())

    def _last_look(self, state: StackState) -> None:
        """Nothing that bills may carry the id any more. Raises StillBills, CloudError."""
        if state.cluster_id is None:
            return
        since = BEFORE_ALL if self._request.is_all else None
        self._look(state.cluster_id, forgotten(state), data_since=since)

    def _look(
        self, cluster_id: str, state: StackState, *, data_since: datetime | None, known_now: KnownNow | None = None
    ) -> tuple[CloudResource, ...]:
        change = self._change
        try:
            return last_look(
                change.clients,
                cluster_id,
                state,
                data_since=data_since,
                tell=change.tell,
                agreed=change.note_agreed,
                again=self._again(),
                known_now=known_now,
            )
        except KeyboardInterrupt:
            self._output.note(
                f"stopped before AWS was asked for all that bills: it may.\n  next: {self._reaps(cluster_id)}"
            )
            raise

    def _reaps(self, cluster_id: str) -> str:
        """What ends what this `down` left; its stack may know nothing of it any more."""
        return reap_id(cluster_id, region=self._request.where.region, rehearse=self._change.is_rehearsal)

    def _staying(self, state: StackState, kept: Sequence[StoredData], *, region: str) -> list[str]:
        """What stays and what it costs, by the state."""
        prices = load_catalog(self._change.home.prices_file)
        return [*bill_lines(kept, prices, region=region), *network_bill_lines(state, prices, region=region)]

    def _clean_config(self) -> None:
        config_file = self._change.engine.environment.config_file
        text = read_config(config_file)
        cleaned = without_own_values(text)
        if cleaned != text:
            write_config(config_file, cleaned)
        budget = config_values(text).get(BUDGET)
        if budget is not None and config_values(cleaned).get(BUDGET) != budget:
            self._output.note(f"  the budget of {usd(float(budget))} that extend gave it went with it")

    def _what_goes(self, state: StackState, *, keeps_data: bool, kept: Sequence[StoredData]) -> str:
        nodes = count(len(state.machines), "node")
        parts = len([one for one in state.resources if one.is_custom])
        label = " (rehearsed)" if self._change.is_rehearsal else ""
        data, name = data_in(state), self._change.cluster
        if state.cluster_name not in (None, self._change.name):
            name = f"{state.cluster_name} (cluster.yaml says {self._change.name})"
        if keeps_data:
            ended = "".join(f" and {one.named}" for one in data if one not in kept)
            return f"{name}{label}: ends {nodes}{ended}; network and storage are kept"
        holders = [*(one.named for one in data), *others_in(state)]
        lost = f", and what is in {', '.join(holders)}" if holders else ""
        return f"{name}{label}: ends {nodes} and all else of it, {count(parts, 'resource')}{lost}"

    def _written(self) -> Intent:
        """What is asked for now. Raises ConfigError."""
        text = read_config(self._change.engine.environment.config_file)
        return read_intent(self._change.stack, text, nodes=None, fresh_prices=self._change.home.prices_file)

    def _ask(self) -> None:
        if self._change.is_rehearsal or self._request.is_agreed:
            return
        if not self._output.confirm("End this?"):
            raise UsageError("not agreed, nothing was changed", hint=f"{self._again()} --yes")

    def _again(self) -> str:
        return typed_again(self._request)


def stray_data(clients: Clients, state: StackState, *, tell: Callable[[str], None]) -> tuple[CloudResource, ...]:
    """Those of the cluster, found by the id that the state keeps.

    A right that is missing keeps no machine running: what AWS does not tell of is told here, and named again by the
    last look.
    """
    if state.cluster_id is None:
        return ()
    seen = look_at_each(clients, state.cluster_id, DATA_KINDS)
    if seen.not_asked:
        tell(f"not asked: {', '.join(named(seen.not_asked))}: one that is in no state would be left, and bill")
    return orphans(seen.things, state.physical_ids, DATA_KINDS)
