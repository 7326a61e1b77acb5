"""What a `down` ends and what it leaves, decided from the state and AWS, and shown before anybody agrees to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ClusterctlError

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.look import look_at_each, named
from clusterctl.cloud.resource import CloudResource, orphans
from clusterctl.cloud.storage_resources import DATA_KINDS
from clusterctl.engine.stack_config import read_config
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.data import StoredData, bill_lines, data_in, holds_data, kept_in, others_in
from clusterctl.lifecycle.intent import Intent, read_intent
from clusterctl.lifecycle.last_look import bill_of, network_bill_lines
from clusterctl.text.quantities import count


@dataclass(frozen=True, kw_only=True)
class DownEffect:
    """What a `down` ends, and what it leaves."""

    state: StackState
    keeps_data: bool
    """The network and the storage stay; else nothing does."""
    kept: tuple[StoredData, ...]
    """The file systems of the state that stay."""


def effect_of_down(change: Change, state: StackState, *, is_all: bool) -> DownEffect:
    """What the `down` ends, and what stays. Data that is in no state is named, and left."""
    strays = () if is_all else stray_data(change.clients, state, tell=change.tell)
    for stray in strays:
        change.tell(
            f"{stray.kind} {stray.id} is in no Pulumi state and holds data: it stays and bills {bill_of(stray)}"
        )
    kept = () if is_all else kept_data(change, state)
    keeps_data = bool(kept or strays) or (not is_all and holds_data(state))
    return DownEffect(state=state, keeps_data=keeps_data, kept=kept)


def stray_data(clients: Clients, state: StackState, *, tell: Callable[[str], None]) -> tuple[CloudResource, ...]:
    """The cluster's resources that hold data and are in no state, found by the cluster's id.

    A missing right must not keep machines running: kinds that AWS does not list are only named, here and once more by
    the last look.
    """
    if state.cluster_id is None:
        return ()
    seen = look_at_each(clients, state.cluster_id, DATA_KINDS)
    if seen.not_listed:
        unlisted = ", ".join(named(seen.not_listed))
        tell(f"AWS did not say whether it has: {unlisted}. One that is in no state would stay, and bill")
    return orphans(seen.things, state.physical_ids, DATA_KINDS)


def kept_data(change: Change, state: StackState) -> tuple[StoredData, ...]:
    """The file systems that stay; if cluster.yaml cannot be read, those that the state marks to stay."""
    try:
        return kept_in(state, written_of(change).config, load_catalog())
    except ClusterctlError:
        return tuple(data for data in data_in(state) if data.is_retained)


def written_of(change: Change) -> Intent:
    """What the stack's file and config ask for now. Raises ConfigError."""
    text = read_config(change.engine.environment.config_file)
    return read_intent(change.stack, text, nodes=None, fresh_prices=change.home.prices_file)


def show_preview(change: Change, effect: DownEffect, *, region: str) -> None:
    """Says what is ended, and what stays and bills."""
    change.output.note(ending_line(change, effect))
    if effect.keeps_data:
        for line in staying_lines(change, effect.state, effect.kept, region=region):
            change.output.note(f"  stays    {line}")


def ending_line(change: Change, effect: DownEffect) -> str:
    """`train: ends 4 nodes; network and storage are kept`."""
    state, kept = effect.state, effect.kept
    nodes = count(len(state.machines), "node")
    parts = len([part for part in state.resources if part.is_custom])
    label = " (rehearsed)" if change.is_rehearsal else ""
    data, name = data_in(state), change.cluster
    if state.cluster_name not in (None, change.name):
        name = f"{state.cluster_name} (cluster.yaml says {change.name})"
    if effect.keeps_data:
        ended = "".join(f" and {store.named}" for store in data if store not in kept)
        return f"{name}{label}: ends {nodes}{ended}; network and storage are kept"
    holders = [*(store.named for store in data), *others_in(state)]
    lost = f", and what is in {', '.join(holders)}" if holders else ""
    return f"{name}{label}: ends {nodes} and everything else of it, {count(parts, 'resource')}{lost}"


def staying_lines(change: Change, state: StackState, kept: Sequence[StoredData], *, region: str) -> list[str]:
    """What stays and what it costs, by the state."""
    prices = load_catalog(change.home.prices_file)
    return [*bill_lines(kept, prices, region=region), *network_bill_lines(state, prices, region=region)]
