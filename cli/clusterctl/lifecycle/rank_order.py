"""`ranks: topology`: AWS is asked once, when all machines run; the order is kept in the config and the Membership."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import CloudError, UsageError
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.ranks import topology_ranks

from clusterctl.cloud.topology import network_paths
from clusterctl.engine.stack_config import read_config, with_values, write_config
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.newer_membership import run_on_own_resources
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import count


@dataclass(frozen=True, kw_only=True)
class RankOrder:
    """The rank of each slot, and what a person is told about it."""

    ranks: tuple[int, ...]
    summary: str


def is_wanted(intent: Intent, *, is_asked: bool) -> bool:
    """Whether the ranks have to be ordered after this run: once, and whenever a person asks."""
    return intent.config.ranks == "topology" and (is_asked or not intent.settings.slot_ranks)


def refuse_reorder(intent: Intent, *, source: str) -> None:
    """Raises UsageError when cluster.yaml does not order ranks by topology."""
    if intent.config.ranks != "topology":
        raise UsageError(
            f"--reorder-ranks: a rank is its slot's number here; write ranks: topology in {source} for another order",
            hint=edit(source),
        )


def order_ranks(change: Change, cluster_plan: ClusterPlan, *, shown: str) -> None:
    """Asks for the topology and keeps the order; running nodes get it with the membership. Raises EngineError.

    The engine runs once more, on our own resources alone, if the order is another one than before. If AWS does not give
    the topology, the ranks stay as they are for good: nothing may change by itself later.
    """
    state = change.engine.export() or StackState()
    before = tuple(slot.rank for slot in cluster_plan.slots)
    order = _asked_order(change, state, before, instance_type=cluster_plan.instance_type, shown=shown)
    config_file = change.engine.environment.config_file
    kept = {"slot-ranks": json.dumps(order.ranks, separators=(",", ":"))}
    write_config(config_file, with_values(read_config(config_file), kept))
    change.output.note(f" ranks       {order.summary}")
    if order.ranks != before:
        run_on_own_resources(change, state, doing="storing the order of ranks", shown=shown)


def _asked_order(
    change: Change, state: StackState, before: tuple[int, ...], *, instance_type: str, shown: str
) -> RankOrder:
    ids = {instance.slot: instance.instance_id for instance in state.instances}
    again = f"clusterctl up {shown} --reorder-ranks"
    if sorted(ids) != list(range(len(before))):
        return RankOrder(ranks=before, summary=f"as they were: not every slot has a machine; later: {again}")
    try:
        paths = network_paths(change.clients, [ids[slot] for slot in sorted(ids)])
    except CloudError as e:
        return RankOrder(ranks=before, summary=f"as they were: {e.message}; later: {again}")
    return order_of([paths[ids[slot]] for slot in sorted(ids)], before, instance_type, change.is_rehearsal)


def order_of(
    paths: Sequence[tuple[str, ...]], before: tuple[int, ...], instance_type: str, is_rehearsal: bool
) -> RankOrder:
    """The order by the machines' `paths` in the network, or the one before if AWS did not give every path. Pure."""
    if not all(paths):
        return RankOrder(ranks=before, summary=f"as they were: AWS gives no topology of {instance_type}")
    ranks = topology_ranks(paths)
    groups = count(len(set(paths)), "group")
    simulated = ", simulated" if is_rehearsal else ""
    moved = sum(rank != old for rank, old in zip(ranks, before, strict=True))
    changed = f"{count(moved, 'node')} changed rank" if moved else "no rank changed"
    return RankOrder(ranks=ranks, summary=f"by network topology ({groups} of neighbours{simulated}): {changed}")
