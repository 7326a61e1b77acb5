"""The account of a cluster: which instance ran in which slot, and what billed beside them, from when to when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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
    """What bills whether or not a machine runs, at one rate; `ended_at` is None while it does."""

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
        """Nothing was ever paid."""
        return not self.spans and not self.standing


def ledger_to_json(ledger: Ledger) -> list[dict[str, object]]:
    """JSON-able rows, oldest first; times as ISO 8601 with offset."""
    return [*map(_span_row, ledger.spans), *map(_standing_row, ledger.standing)]


def ledger_from_json(rows: Iterable[Mapping[str, object]]) -> Ledger:
    """The ledger that `ledger_to_json` wrote; raises KeyError, TypeError or ValueError on other shapes."""
    listed = tuple(rows)
    return Ledger(
        spans=tuple(_span(row) for row in listed if "kind" not in row),
        standing=tuple(_standing(row) for row in listed if "kind" in row),
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


def _span(row: Mapping[str, object]) -> Span:
    return Span(
        slot=int(str(row["slot"]).removesuffix(".0")),
        instance_id=str(row["instance_id"]),
        started_at=datetime.fromisoformat(str(row["started_at"])),
        ended_at=_ended_at(row),
        price_usd_per_hour=_price(row),
    )


def _standing(row: Mapping[str, object]) -> Standing:
    kind = next((kind for kind in STANDING_KINDS if kind == row["kind"]), None)
    if kind is None:
        raise ValueError(f"kind: {row['kind']!r}")
    return Standing(
        kind=kind,
        started_at=datetime.fromisoformat(str(row["started_at"])),
        ended_at=_ended_at(row),
        usd_per_hour=_price(row),
    )


def _ended_at(row: Mapping[str, object]) -> datetime | None:
    ended = row.get("ended_at")  # the engine leaves nulls out of a stack's outputs
    return None if ended is None else datetime.fromisoformat(str(ended))


def _price(row: Mapping[str, object]) -> float | None:
    price = row.get("price_usd_per_hour")
    return None if price is None else float(str(price))
