"""What a cluster has cost, costs now, and will have cost at its deadline: rows of an estimated bill. Pure.

The ledger says which machine ran in which slot from when to when, at what list price, and what disks,
addresses, the gateway and storage cost beside, over all runs and between them; what AWS itself said of a machine counts
instead (`reconcile`). A machine whose end was not seen counts to the deadline, for its slot is reserved until then: AWS
bills a reservation whether or not something runs in it. Where AWS was seen to hold no reservation any more, nothing
counts beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from clusterctl_infra.ledger import Ledger, Span, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cost.cost_row import HOUR, CostRow, cost_row, folded
from clusterctl.cost.places import Paid
from clusterctl.cost.reconcile import reconcile, released_at
from clusterctl.cost.sighting import NOTHING_OBSERVED, Observed
from clusterctl.cost.standing_rows import assumed_rates, gone_with_machines, standing_rows

NOTHING_OVER: Mapping[StandingKind, datetime] = MappingProxyType({})
NOT_COUNTED = (
    *("traffic", "what the NAT gateway carries", "what EFS and S3 bill by use"),
    *("the deadline's alarms and state machine (cents)", "backups and logs that the account makes"),
    *("prepaid capacity", "discounts", "tax"),
)
"""What AWS bills besides, or at another price: hourly list prices do not cover it."""
EMPTY = "empty: a reservation bills all the same"
LATE = "runs on after the deadline"
TAIL = "AWS may bill its reservation up to 1 h longer"
IN_NO_LEDGER = "in no ledger on this computer: found by the cluster's tag"
NO_LEDGER = "no ledger on this computer: counted from the start of the run"


def cost_rows(
    inventory: Inventory,
    ledger: Ledger | None,
    *,
    alive: frozenset[str] | None,
    now: datetime,
    observed: Observed = NOTHING_OBSERVED,
    is_reserved: bool | None = None,
    over: Mapping[StandingKind, datetime] = NOTHING_OVER,
    ways_out: frozenset[StandingKind] | None = None,
) -> tuple[CostRow, ...]:
    """Machines by slot and time, the reserved places in which nothing runs, then what bills beside them.

    `alive`: the instances that AWS says run; `is_reserved`: whether it says that places are held; None: it did not
    answer, and the ledger alone counts. `over`: the kinds of things beside machines that are gone, and since when.
    `ways_out`: which of elastic IPs and the NAT gateway AWS still has; None: it was not asked.
    """
    # A cluster that is down has no end to look forward to: what it keeps bills until somebody ends it.
    deadline = now if inventory.run_nodes_down else datetime.fromisoformat(inventory.deadline)
    spans = _assumed_spans(inventory, observed) if ledger is None else ledger.spans
    if inventory.capacity != "on-demand":
        # Nothing is reserved for spot machines, and a cluster that uses a reservation that existed before it reserves
        # nothing itself. If places are held all the same, AWS has said so.
        is_reserved = bool(is_reserved)
    paid = reconcile(spans, observed, alive=alive, deadline=deadline, now=now, is_reserved=is_reserved)
    look = _Look(
        inventory=inventory,
        alive=alive,
        deadline=deadline,
        now=now,
        unseen=NO_LEDGER if ledger is None else None,
        is_reserved=is_reserved,
        is_released=released_at(observed, is_reserved=is_reserved, deadline=deadline, now=now) is not None,
    )
    nodes = [_node_row(row, look) for row in paid]
    nodes.sort(key=lambda row: (row.slot or 0, row.started_at))
    machines, empty = [row for row in nodes if row.kind == "node"], [row for row in nodes if row.kind == "empty"]
    ended = {**gone_with_machines(inventory, machines, alive=alive, ways_out=ways_out), **over}
    return (*machines, *folded(empty), *standing_rows(inventory, ledger, over=ended, deadline=deadline, now=now))


def uncounted(ledger: Ledger | None, alive: frozenset[str] | None) -> tuple[str, ...]:
    """Instances that run and are in no ledger: their cost counts from their launch, but the deadline ignores it."""
    if ledger is None or alive is None:
        return ()
    return tuple(sorted(alive - {span.instance_id for span in ledger.spans}))


@dataclass(frozen=True, kw_only=True)
class _Look:
    """All that is known when the cost is estimated."""

    inventory: Inventory
    alive: frozenset[str] | None
    deadline: datetime
    now: datetime
    unseen: str | None
    """The note on each machine's row if there is no ledger; None if there is one."""
    is_reserved: bool | None
    is_released: bool
    """Whether AWS holds no reserved place any more."""


def _node_row(paid: Paid, look: _Look) -> CostRow:
    name = look.inventory.name
    ended_at, note = _end_and_note(paid, look)
    return cost_row(
        kind="empty" if paid.instance_id is None else "node",
        name=name if paid.slot is None else f"{name}-{paid.slot}",
        slot=paid.slot,
        instance_id=paid.instance_id or None,
        started_at=paid.started_at,
        ended_at=ended_at,
        usd_per_hour=paid.usd_per_hour,
        deadline=look.deadline,
        now=look.now,
        note=note,
        is_start_seen=paid.is_start_seen,
        is_end_seen=paid.is_end_seen,
    )


def _end_and_note(paid: Paid, look: _Look) -> tuple[datetime | None, str | None]:
    """When it stopped billing, as far as that is known, and a note about anything unusual."""
    deadline, alive, ended_at = look.deadline, look.alive, paid.ended_at
    is_place = paid.instance_id is None
    note = EMPTY if is_place else look.unseen if paid.is_in_ledger else IN_NO_LEDGER
    if ended_at is None:
        is_gone = alive is not None and bool(paid.instance_id) and paid.instance_id not in alive
        if look.now < deadline:
            return None, EMPTY if is_gone else note
        if alive is not None and paid.instance_id in alive:
            return None, LATE
        if is_place and look.is_reserved:
            return None, TAIL
        ended_at = max(deadline, paid.started_at)
    if not look.is_released and ended_at >= deadline and deadline <= look.now < deadline + HOUR:
        note = TAIL
    return ended_at, note


def _assumed_spans(inventory: Inventory, observed: Observed) -> tuple[Span, ...]:
    """The spans to assume without a ledger: every node since the start of the run, at its share of the hourly sum.

    A node whose instance id was never written down counts only if AWS was never seen to have any machine.
    """
    if inventory.run_nodes_down or not inventory.nodes:
        return ()
    beside = math.fsum(rate or 0.0 for rate in assumed_rates(inventory).values())
    rate = inventory.usd_per_hour
    return tuple(
        Span(
            slot=node.slot,
            instance_id=node.instance_id or "",
            started_at=datetime.fromisoformat(inventory.started_at),
            ended_at=None,
            price_usd_per_hour=None if rate is None else max(0.0, rate - beside) / len(inventory.nodes),
        )
        for node in inventory.nodes
        if node.instance_id is not None or not observed.machines
    )
