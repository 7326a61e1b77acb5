"""What a cluster has cost, costs now, and will have cost at its deadline: rows of an estimated bill. Pure.

The account (`ledger`) says which machine ran in which slot from when to when, at what list price, and what addresses
and storage cost beside, over all runs and between them; what AWS itself said of a machine holds instead (`reconcile`).
A machine whose end was not seen counts to the deadline, for its slot is reserved until then: AWS bills a reservation
whether or not something runs in it. Where AWS was seen to hold no reservation any more, nothing counts beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from clusterctl_infra.ledger import Ledger, Span, Standing, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cost.paid import Paid
from clusterctl.cost.reconcile import reconcile, released_at
from clusterctl.cost.sighting import NOTHING_OBSERVED, Observed
from clusterctl.node_set import fold_names

Kind = Literal["node", "empty", "addresses", "storage"]
"""`empty`: a reserved place in which nothing runs."""
HOUR = timedelta(hours=1)
NOT_COUNTED = (
    *("root disks", "traffic", "the NAT gateway", "what EFS and S3 bill by use"),
    *("prepaid capacity", "discounts", "tax"),
)
"""What AWS bills besides, or differently; no list price by the hour tells it."""
EMPTY = "empty: a reservation bills all the same"
LATE = "runs on after the deadline"
TAIL = "AWS may bill its reservation up to 1 h longer"
IN_NO_ACCOUNT = "in no account on this computer: found by the cluster's tag"
NO_ACCOUNT = "no account on this computer: counted from the start of the run"


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One thing that bills; sums are US dollars, None is unknown and never 0."""

    kind: Kind
    name: str
    slot: int | None
    instance_id: str | None
    started_at: datetime
    ended_at: datetime | None
    """None while it bills."""
    usd_per_hour: float | None
    spent_usd: float | None
    at_deadline_usd: float | None
    note: str | None = None
    is_start_seen: bool = False
    """AWS said it; else it is assumed from the account."""
    is_end_seen: bool = False

    @property
    def usd_per_hour_now(self) -> float | None:
        """Its rate, as long as it bills."""
        return self.usd_per_hour if self.ended_at is None else 0.0


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Three sums over rows; None as soon as one of them is unknown."""

    spent_usd: float | None
    usd_per_hour: float | None
    at_deadline_usd: float | None


def cost_rows(
    inventory: Inventory,
    account: Ledger | None,
    *,
    alive: frozenset[str] | None,
    now: datetime,
    observed: Observed = NOTHING_OBSERVED,
    is_reserved: bool | None = None,
) -> tuple[CostRow, ...]:
    """Machines by slot and time, the reserved places in which nothing runs, then what bills beside them.

    `alive`: the instances that AWS says run; `is_reserved`: whether it says that places are held; None: it did not
    answer, and the account alone counts.
    """
    # A cluster that is down has no end to look forward to: what it keeps bills until somebody ends it.
    deadline = now if inventory.run_nodes_down else datetime.fromisoformat(inventory.deadline)
    spans = _assumed_spans(inventory, observed) if account is None else account.spans
    paid = reconcile(spans, observed, alive=alive, deadline=deadline, now=now, is_reserved=is_reserved)
    look = _Look(
        inventory=inventory,
        alive=alive,
        deadline=deadline,
        now=now,
        unseen=NO_ACCOUNT if account is None else None,
        is_reserved=is_reserved,
        is_released=released_at(observed, is_reserved=is_reserved, now=now) is not None,
    )
    nodes = [_node_row(one, look) for one in paid]
    nodes.sort(key=lambda row: (row.slot or 0, row.started_at))
    machines, empty = [row for row in nodes if row.kind == "node"], [row for row in nodes if row.kind == "empty"]
    standing = _assumed_standing(inventory) if account is None or not account.standing else account.standing
    beside = (_standing_row(one, deadline=deadline, now=now) for one in standing)
    return (*machines, *folded(empty), *beside)


def sums(rows: Iterable[CostRow]) -> Sums:
    """The sums over these rows."""
    listed = tuple(rows)
    return Sums(
        spent_usd=_total(row.spent_usd for row in listed),
        usd_per_hour=_total(row.usd_per_hour_now for row in listed),
        at_deadline_usd=_total(row.at_deadline_usd for row in listed),
    )


def by_kind(rows: Iterable[CostRow]) -> dict[Kind, Sums]:
    """The sums of each kind that there is."""
    listed = tuple(rows)
    kinds = dict.fromkeys(row.kind for row in listed)
    return {kind: sums(row for row in listed if row.kind == kind) for kind in kinds}


def uncounted(account: Ledger | None, alive: frozenset[str] | None) -> tuple[str, ...]:
    """Instances that run and are in no account: they are counted from their launch, but in no deadline."""
    if account is None or alive is None:
        return ()
    return tuple(sorted(alive - {span.instance_id for span in account.spans}))


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What is known at one look."""

    inventory: Inventory
    alive: frozenset[str] | None
    deadline: datetime
    now: datetime
    unseen: str | None
    """Why all of it is assumed."""
    is_reserved: bool | None
    is_released: bool
    """No place is held any more."""


def _node_row(paid: Paid, look: _Look) -> CostRow:
    name = look.inventory.name
    ended_at, note = _end_and_note(paid, look)
    return _row(
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
    """When it stopped billing, as far as that is known, and what is out of the ordinary with it."""
    deadline, alive, ended_at = look.deadline, look.alive, paid.ended_at
    is_place = paid.instance_id is None
    note = EMPTY if is_place else look.unseen if paid.is_in_account else IN_NO_ACCOUNT
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


def folded(rows: Iterable[CostRow]) -> list[CostRow]:
    """One row for the places of several slots that were empty at the same time, at the same price."""
    alike: dict[tuple[object, ...], list[CostRow]] = {}
    for row in rows:
        key = (row.started_at, row.ended_at, row.usd_per_hour, row.note, row.is_start_seen, row.is_end_seen)
        alike.setdefault(key, []).append(row)
    together = [_together(group) for group in alike.values()]
    return sorted(together, key=lambda row: (row.started_at, row.name))


def _together(rows: Sequence[CostRow]) -> CostRow:
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        name=fold_names(row.name for row in rows),
        slot=None,
        usd_per_hour=_total(row.usd_per_hour for row in rows),
        spent_usd=_total(row.spent_usd for row in rows),
        at_deadline_usd=_total(row.at_deadline_usd for row in rows),
    )


def _standing_row(standing: Standing, *, deadline: datetime, now: datetime) -> CostRow:
    """Addresses or storage, which bill until somebody ends them."""
    return _row(
        kind=standing.kind,
        name=standing.kind,
        started_at=standing.started_at,
        ended_at=standing.ended_at,
        usd_per_hour=standing.usd_per_hour,
        deadline=deadline,
        now=now,
    )


def _assumed_standing(inventory: Inventory) -> tuple[Standing, ...]:
    """Without an account of it: today's rates from the start of the run."""
    if inventory.prices_dated is None:  # written by a clusterctl that knew only the sum
        return ()
    rates: dict[StandingKind, float | None] = {
        "addresses": inventory.addresses_usd_per_hour,
        "storage": inventory.storage_usd_per_hour,
    }
    began = datetime.fromisoformat(inventory.started_at)
    return tuple(
        Standing(kind=kind, started_at=began, ended_at=None, usd_per_hour=rate)
        for kind, rate in rates.items()
        if rate != 0
    )


def _assumed_spans(inventory: Inventory, observed: Observed) -> tuple[Span, ...]:
    """Without an account: every node since the start of the run, at its share of the hourly sum.

    A node whose machine nobody wrote down counts only where AWS was never seen to have any.
    """
    if inventory.run_nodes_down or not inventory.nodes:
        return ()
    beside = (inventory.addresses_usd_per_hour or 0.0) + (inventory.storage_usd_per_hour or 0.0)
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


def _row(
    *,
    kind: Kind,
    name: str,
    started_at: datetime,
    usd_per_hour: float | None,
    deadline: datetime,
    now: datetime,
    slot: int | None = None,
    instance_id: str | None = None,
    ended_at: datetime | None = None,
    note: str | None = None,
    is_start_seen: bool = False,
    is_end_seen: bool = False,
) -> CostRow:
    return CostRow(
        kind=kind,
        name=name,
        slot=slot,
        instance_id=instance_id,
        started_at=started_at,
        ended_at=ended_at,
        usd_per_hour=usd_per_hour,
        spent_usd=_paid(usd_per_hour, started_at, min(now, ended_at or now)),
        at_deadline_usd=_paid(usd_per_hour, started_at, ended_at or max(deadline, now)),
        note=note,
        is_start_seen=is_start_seen,
        is_end_seen=is_end_seen,
    )


def _paid(usd_per_hour: float | None, began: datetime, until: datetime) -> float | None:
    return None if usd_per_hour is None else usd_per_hour * (max(timedelta(0), until - began) / HOUR)


def _total(parts: Iterable[float | None]) -> float | None:
    listed = tuple(parts)
    known = [part for part in listed if part is not None]
    return math.fsum(known) if len(known) == len(listed) else None
