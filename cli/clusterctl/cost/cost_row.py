"""A row of the estimated bill, and sums over rows. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from clusterctl_infra.ledger import StandingKind

from clusterctl.text.node_set import fold_names

Kind = Literal["node", "empty"] | StandingKind
"""`empty`: a reserved place in which nothing runs."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One thing that bills; sums are in US dollars, and None means unknown, never 0."""

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
    """Whether AWS itself named the instant; if not, it is assumed from the ledger."""
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


def cost_row(
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
    """The row, with its sums."""
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


def sums(rows: Iterable[CostRow]) -> Sums:
    """The sums over these rows."""
    listed = tuple(rows)
    return Sums(
        spent_usd=_total(row.spent_usd for row in listed),
        usd_per_hour=_total(row.usd_per_hour_now for row in listed),
        at_deadline_usd=_total(row.at_deadline_usd for row in listed),
    )


def by_kind(rows: Iterable[CostRow]) -> dict[Kind, Sums]:
    """The sums for each kind of resource in the rows."""
    listed = tuple(rows)
    kinds = dict.fromkeys(row.kind for row in listed)
    return {kind: sums(row for row in listed if row.kind == kind) for kind in kinds}


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


def _paid(usd_per_hour: float | None, began: datetime, until: datetime) -> float | None:
    return None if usd_per_hour is None else usd_per_hour * (max(timedelta(0), until - began) / HOUR)


def _total(parts: Iterable[float | None]) -> float | None:
    listed = tuple(parts)
    known = [part for part in listed if part is not None]
    return math.fsum(known) if len(known) == len(listed) else None
