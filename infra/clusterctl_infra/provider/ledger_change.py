"""How the ledger of a cluster follows its members and what bills beside them, at one instant. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.ledger import STANDING_KINDS, Ledger, Span, Standing, StandingKind
from clusterctl_infra.ledger_correction import corrected

Rates = Mapping[StandingKind, float | None]
"""Kind → US dollars per hour of everything of that kind together; None is unknown."""


@dataclass(frozen=True, kw_only=True)
class LedgerChange:
    """The ledger after a change, and what the change opened and closed in it."""

    ledger: Ledger
    opened: Ledger
    closed: Ledger

    @property
    def is_any(self) -> bool:
        """Whether anything was opened or closed."""
        return not (self.opened.is_empty and self.closed.is_empty)


def follow(
    ledger: Ledger,
    members: Mapping[int, str],
    rates: Rates,
    *,
    at: datetime,
    run_started_at: datetime,
    ends_by: datetime | None,
    price_usd_per_hour: float | None,
    observed: Sequence[Span] = (),
) -> LedgerChange:
    """The ledger when the instances of `members` (slot → id) are the ones that run, with `rates` beside them.

    The first members of a run count from the run's start, which is before they exist, so that the count is never too
    low; so does what bills beside them in the first run. All else counts from `at`, the instant that the plan was made
    for, so the plan's deadline stays true afterwards. A machine that is no longer a member ended at `at`, or at the
    deadline `ends_by` that it had, whichever came first; what bills beside machines has no deadline. `observed`: spans
    as AWS reported them; the ledger is corrected with them first.
    """
    corrections = tuple(span for span in observed if span not in ledger.spans)
    ledger = corrected(ledger, corrections)
    running = {(span.slot, span.instance_id) for span in ledger.spans if span.ended_at is None}
    wanted = set(members.items())
    born_at = at if running else run_started_at
    spans = tuple(
        Span(slot=slot, instance_id=id, started_at=born_at, ended_at=None, price_usd_per_hour=price_usd_per_hour)
        for slot, id in sorted(wanted - running)
    )
    standing = _new_standing(ledger, rates, at=run_started_at if ledger.is_empty else at)
    gone = (span for span in ledger.spans if span.ended_at is None and (span.slot, span.instance_id) not in wanted)
    outdated = (row for row in _open(ledger) if row.usd_per_hour != rates.get(row.kind, 0.0))
    change = _changed(
        ledger,
        opened=Ledger(spans=spans, standing=standing),
        ended_spans={span: _ended_span(span, at, ends_by) for span in gone},
        ended_standing={row: _ended_standing(row, at) for row in outdated},
    )
    return dataclasses.replace(change, opened=Ledger(spans=(*corrections, *spans), standing=standing))


def changed_rates(ledger: Ledger, rates: Rates) -> tuple[StandingKind, ...]:
    """The kinds that bill at another rate than the one that is open in the ledger."""
    known = {row.kind: row.usd_per_hour for row in _open(ledger)}
    return tuple(kind for kind in STANDING_KINDS if known.get(kind, 0.0) != rates.get(kind, 0.0))


def close_all(ledger: Ledger, *, at: datetime, ends_by: datetime | None) -> LedgerChange:
    """The ledger when nothing bills any more."""
    return _changed(
        ledger,
        opened=Ledger(),
        ended_spans={span: _ended_span(span, at, ends_by) for span in ledger.spans if span.ended_at is None},
        ended_standing={row: _ended_standing(row, at) for row in _open(ledger)},
    )


def _changed(
    ledger: Ledger,
    *,
    opened: Ledger,
    ended_spans: Mapping[Span, Span],
    ended_standing: Mapping[Standing, Standing],
) -> LedgerChange:
    """The change that ends rows of the ledger (open row → the row with its end) and adds those of `opened`."""
    return LedgerChange(
        ledger=Ledger(
            spans=(*(ended_spans.get(span, span) for span in ledger.spans), *opened.spans),
            standing=(*(ended_standing.get(row, row) for row in ledger.standing), *opened.standing),
        ),
        opened=opened,
        closed=Ledger(spans=tuple(ended_spans.values()), standing=tuple(ended_standing.values())),
    )


def _new_standing(ledger: Ledger, rates: Rates, *, at: datetime) -> tuple[Standing, ...]:
    """New rows for what bills at another rate from now on, unless that is 0."""
    return tuple(
        Standing(kind=kind, started_at=at, ended_at=None, usd_per_hour=rates[kind])
        for kind in changed_rates(ledger, rates)
        if rates.get(kind, 0.0) != 0.0
    )


def _open(ledger: Ledger) -> tuple[Standing, ...]:
    return tuple(row for row in ledger.standing if row.ended_at is None)


def _ended_standing(row: Standing, at: datetime) -> Standing:
    return dataclasses.replace(row, ended_at=max(at, row.started_at))


def _ended_span(span: Span, at: datetime, ends_by: datetime | None) -> Span:
    end = at if ends_by is None else min(at, ends_by)
    return dataclasses.replace(span, ended_at=max(end, span.started_at))
