"""How the account of a cluster follows its members: spans opened and closed at one instant. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.ledger import Ledger, Span


@dataclass(frozen=True, kw_only=True)
class LedgerChange:
    """The account after a change, and the spans that the change opened and closed."""

    ledger: Ledger
    opened: tuple[Span, ...] = ()
    closed: tuple[Span, ...] = ()


def follow_members(
    ledger: Ledger,
    members: Mapping[int, str],
    *,
    at: datetime,
    run_started_at: datetime,
    ends_by: datetime | None,
    price_usd_per_hour: float | None,
) -> LedgerChange:
    """The account when the instances of `members` (slot → id) are the ones that run.

    The first members of a run count from its start, which is before they exist: it errs early. Later ones
    count from `at`, the instant that the plan was made for, so the plan's deadline stays true afterwards. What ran
    before ended at `at`, or at the deadline `ends_by` that it had, whichever came first.
    """
    running = {(span.slot, span.instance_id) for span in ledger.spans if span.ended_at is None}
    wanted = set(members.items())
    closed = tuple(
        _ended(span, at, ends_by)
        for span in ledger.spans
        if span.ended_at is None and (span.slot, span.instance_id) not in wanted
    )
    started_at = at if running else run_started_at
    opened = tuple(
        Span(
            slot=slot,
            instance_id=instance_id,
            started_at=started_at,
            ended_at=None,
            price_usd_per_hour=price_usd_per_hour,
        )
        for slot, instance_id in sorted(wanted - running)
    )
    return LedgerChange(ledger=Ledger(spans=(*_with_closed(ledger, closed), *opened)), opened=opened, closed=closed)


def close_all(ledger: Ledger, *, at: datetime, ends_by: datetime | None) -> LedgerChange:
    """The account when nothing runs any more."""
    closed = tuple(_ended(span, at, ends_by) for span in ledger.spans if span.ended_at is None)
    return LedgerChange(ledger=Ledger(spans=_with_closed(ledger, closed)), closed=closed)


def _ended(span: Span, at: datetime, ends_by: datetime | None) -> Span:
    end = at if ends_by is None else min(at, ends_by)
    return dataclasses.replace(span, ended_at=max(end, span.started_at))


def _with_closed(ledger: Ledger, closed: tuple[Span, ...]) -> tuple[Span, ...]:
    ends = {(span.slot, span.instance_id): span for span in closed}
    return tuple(
        ends.get((span.slot, span.instance_id), span) if span.ended_at is None else span for span in ledger.spans
    )
