"""A cluster's state as a whole: every node judged, the cost added up, machines without a slot named. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.ledger import STANDING_KINDS, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.early_end import EarlyEnd
from clusterctl.cloud.instances import InstanceState
from clusterctl.status.facts import Facts
from clusterctl.status.judge import NodeStatus, judge, strays
from clusterctl.status.ledger import spent_usd
from clusterctl.text.quantities import clock


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All that `clusterctl status` shows."""

    inventory: Inventory
    facts: Facts
    nodes: Sequence[NodeStatus]
    strays: Sequence[InstanceState]
    """Living instances without a place in the cluster."""
    spent_usd: float | None
    """About how much; None when a price is not known."""

    @property
    def ready(self) -> int:
        """How many nodes are ready."""
        return sum(node.is_ready for node in self.nodes)

    @property
    def is_down(self) -> bool:
        """Whether it has no nodes on purpose."""
        return self.inventory.run_nodes_down or not self.nodes


def overview(inventory: Inventory, facts: Facts) -> Overview:
    """The overview that the facts allow."""
    inventory = ended_early(inventory, facts.early_end, now=facts.now)
    return Overview(
        inventory=inventory,
        facts=facts,
        nodes=judge(inventory, facts),
        strays=strays(inventory, facts),
        spent_usd=spent_usd(
            inventory,
            facts.ledger,
            alive=_alive(facts),
            now=facts.now,
            observed=facts.observed,
            is_reserved=facts.is_reserved,
            over=ended_kinds(facts.early_end),
            ways_out=facts.ways_out,
        ),
    )


def ended_early(inventory: Inventory, end: EarlyEnd | None, *, now: datetime) -> Inventory:
    """The inventory; after an early end, that end and its reason replace the deadline and its reason."""
    if end is None:
        return inventory
    reason = end.reason if end.since is None else f"{end.reason} since {clock(end.since, now)}"
    return dataclasses.replace(inventory, deadline=end.at.isoformat(), deadline_reason=reason)


def ended_kinds(end: EarlyEnd | None) -> dict[StandingKind, datetime]:
    """The kinds of things beside machines that are gone, and since when: after `reap` all, except data that stays."""
    if end is None or not end.is_reaped:
        return {}
    kept = ("storage",) if end.keeps_data else ()
    return {kind: end.at for kind in STANDING_KINDS if kind not in kept}


def _alive(facts: Facts) -> frozenset[str] | None:
    """The instances that AWS says run; None when it did not answer."""
    rows = facts.instances
    return None if rows is None else frozenset(row.instance_id for row in rows if row.is_alive)
