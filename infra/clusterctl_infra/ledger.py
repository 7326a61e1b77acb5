"""The account of a cluster: which instance ran in which slot, from when to when, at what price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime


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
class Ledger:
    """All spans of a cluster since its birth, oldest first."""

    spans: tuple[Span, ...] = ()


def ledger_to_json(ledger: Ledger) -> list[dict[str, object]]:
    """JSON-able rows, oldest first; times as ISO 8601 with offset."""
    return [
        {
            "slot": span.slot,
            "instance_id": span.instance_id,
            "started_at": span.started_at.isoformat(),
            "ended_at": None if span.ended_at is None else span.ended_at.isoformat(),
            "price_usd_per_hour": span.price_usd_per_hour,
        }
        for span in ledger.spans
    ]


def ledger_from_json(rows: Iterable[Mapping[str, object]]) -> Ledger:
    """The ledger that `ledger_to_json` wrote; raises KeyError, TypeError or ValueError on other shapes."""
    return Ledger(spans=tuple(_span(row) for row in rows))


def _span(row: Mapping[str, object]) -> Span:
    ended = row.get("ended_at")  # the engine leaves nulls out of a stack's outputs
    price = row.get("price_usd_per_hour")
    return Span(
        slot=int(str(row["slot"]).removesuffix(".0")),
        instance_id=str(row["instance_id"]),
        started_at=datetime.fromisoformat(str(row["started_at"])),
        ended_at=None if ended is None else datetime.fromisoformat(str(ended)),
        price_usd_per_hour=None if price is None else float(str(price)),
    )
