"""The ledger of a cluster: which instance ran in which slot, and what billed beside them, from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from clusterctl_infra.strict_json import Fields, NotAsExpected, shortened, whole_number

MOST_ROWS = 1_000_000
HIGHEST_SLOT = 100_000
HIGHEST_USD_PER_HOUR = 1e9

StandingKind = Literal["disks", "addresses", "gateway", "storage"]
STANDING_KINDS: tuple[StandingKind, ...] = ("disks", "addresses", "gateway", "storage")
"""`disks`: the root disks of the nodes that run; `gateway`: the NAT gateway of private nodes."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """One instance's paid time; `ended_at` is None while it runs."""

    slot: int
    instance_id: str
    started_at: datetime
    ended_at: datetime | None
    price_usd_per_hour: float | None
    """None when the price is unknown; never taken for 0."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What bills beside the machines, at one rate; `ended_at` is None while it goes on."""

    kind: StandingKind
    started_at: datetime
    ended_at: datetime | None
    usd_per_hour: float | None
    """Of all disks, all addresses and so on together; None when a price is unknown."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All that was paid since a cluster's birth, oldest first."""

    spans: tuple[Span, ...] = ()
    standing: tuple[Standing, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written into the ledger."""
        return not self.spans and not self.standing


def ledger_to_json(ledger: Ledger) -> list[dict[str, object]]:
    """JSON-able rows: the spans, then what bills beside them, each oldest first; times as ISO 8601 with offset."""
    return [*map(_span_row, ledger.spans), *map(_standing_row, ledger.standing)]


def ledger_from_json(rows: object) -> Ledger:
    """The ledger that `ledger_to_json` wrote; raises NotAsExpected, a ValueError, on other shapes."""
    if not isinstance(rows, list | tuple):
        raise NotAsExpected(f"the ledger is {shortened(rows)}, not a list")
    listed = tuple(Fields({"ledger": rows}).objects("ledger", most=MOST_ROWS))
    return Ledger(
        spans=tuple(_span(row) for row in listed if not row.has("kind")),
        standing=tuple(_standing(row) for row in listed if row.has("kind")),
    )


def _span_row(span: Span) -> dict[str, object]:
    return {
        "slot": span.slot,
        "instance_id": span.instance_id,
        "started_at": span.started_at.isoformat(),
        "ended_at": None if span.ended_at is None else span.ended_at.isoformat(),
        "price_usd_per_hour": span.price_usd_per_hour,
    }


def _standing_row(standing: Standing) -> dict[str, object]:
    return {
        "kind": standing.kind,
        "started_at": standing.started_at.isoformat(),
        "ended_at": None if standing.ended_at is None else standing.ended_at.isoformat(),
        "price_usd_per_hour": standing.usd_per_hour,
    }


def _span(row: Fields) -> Span:
    return Span(
        slot=_slot(row),
        instance_id=row.text("instance_id"),
        started_at=row.moment("started_at"),
        ended_at=row.moment_or_none("ended_at"),  # the engine leaves nulls out of a stack's outputs
        price_usd_per_hour=_price(row),
    )


def _slot(row: Fields) -> int:
    """The slot in a row; older files have it as a text, such as `3.0`."""
    slot = row.row.get("slot")
    number = whole_number(slot.removesuffix(".0")) if isinstance(slot, str) else None
    return row.whole("slot", high=HIGHEST_SLOT) if number is None else number


def _standing(row: Fields) -> Standing:
    kind = next((kind for kind in STANDING_KINDS if kind == row.text("kind")), None)
    if kind is None:
        raise NotAsExpected(f"kind: {row.text('kind')!r}")
    return Standing(
        kind=kind,
        started_at=row.moment("started_at"),
        ended_at=row.moment_or_none("ended_at"),
        usd_per_hour=_price(row),
    )


def _price(row: Fields) -> float | None:
    key = "price_usd_per_hour"
    return row.number(key, low=0, high=HIGHEST_USD_PER_HOUR) if row.has(key) else None
