"""What was paid for in each slot: the account, put right by what AWS said of the machines. Pure.

The account errs early: it counts from a run's start and to the instant that a change was planned for. Where AWS told
when a machine was launched or ended, that holds instead; a place whose machine ended is paid for as long as it is
reserved; and machines that AWS showed and no account has are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.ledger import Span

from clusterctl.cost.sighting import Observed, SeenMachine


@dataclass(frozen=True, kw_only=True)
class Paid:
    """The paid time of a machine, or of a reserved place without one."""

    slot: int | None
    instance_id: str | None
    """None: an empty place."""
    started_at: datetime
    ended_at: datetime | None
    """None: no end is known."""
    is_start_seen: bool
    """AWS said it; else it is assumed."""
    is_end_seen: bool
    usd_per_hour: float | None
    is_in_account: bool = True


def reconcile(
    spans: Sequence[Span], observed: Observed, *, alive: frozenset[str] | None, deadline: datetime, now: datetime
) -> tuple[Paid, ...]:
    """What was paid for, machines and empty places; without an observation a span stays what it is.

    `alive`: the instances that AWS says run; None: it did not answer.
    """
    seen = observed.machines
    pairs = [(span, _machine(span, seen.get(span.instance_id), alive, deadline)) for span in spans]
    places = [place for span, paid in pairs if (place := _empty_place(span, paid, pairs, deadline)) is not None]
    known = {span.instance_id for span in spans}
    strays = [_stray(one, observed, alive, deadline, now) for id, one in sorted(seen.items()) if id not in known]
    return (*(paid for _, paid in pairs), *places, *strays)


def _machine(span: Span, one: SeenMachine | None, alive: frozenset[str] | None, deadline: datetime) -> Paid:
    """A machine of the account."""
    start, end = span.started_at, span.ended_at
    if one is not None:
        start = one.launched_at
        if one.ended_at is not None or one.gone_at is not None:
            end = _end(one, planned=end or deadline)
        elif end is not None:
            # The account closed it, and nobody saw it go: it ran at least as long as it was seen.
            runs = alive is not None and one.instance_id in alive
            end = None if runs else _latest(end, start, one.alive_at)
    return Paid(
        slot=span.slot,
        instance_id=span.instance_id,
        started_at=start,
        ended_at=end,
        is_start_seen=one is not None,
        is_end_seen=one is not None and one.ended_at is not None,
        usd_per_hour=span.price_usd_per_hour,
    )


def _empty_place(span: Span, paid: Paid, pairs: Iterable[tuple[Span, Paid]], deadline: datetime) -> Paid | None:
    """The slot's place after its machine ended, reserved until the next one, or until the account closed it."""
    began = paid.ended_at
    if began is None or paid.ended_at == span.ended_at:
        return None
    until, is_seen = span.ended_at, False
    if until is not None:
        following = (later for old, later in pairs if old.slot == span.slot and old.started_at == span.ended_at)
        successor = min(following, key=lambda one: one.started_at, default=None)
        if successor is not None:
            until, is_seen = successor.started_at, successor.is_start_seen
    if began >= (until or deadline):
        return None
    return Paid(
        slot=span.slot,
        instance_id=None,
        started_at=began,
        ended_at=until,
        is_start_seen=paid.is_end_seen,
        is_end_seen=is_seen,
        usd_per_hour=span.price_usd_per_hour,
    )


def _stray(
    one: SeenMachine, observed: Observed, alive: frozenset[str] | None, deadline: datetime, now: datetime
) -> Paid:
    """A machine of no account, such as of an `up` that was killed before it wrote it down."""
    end = None
    if one.ended_at is not None or one.gone_at is not None:
        end = _end(one, planned=deadline)
    elif alive is not None and one.instance_id not in alive:
        end = _latest(min(deadline, now), one.launched_at, one.alive_at)
    return Paid(
        slot=one.slot,
        instance_id=one.instance_id,
        started_at=one.launched_at,
        ended_at=end,
        is_start_seen=True,
        is_end_seen=one.ended_at is not None,
        usd_per_hour=None if one.instance_type is None else observed.usd_per_hour.get(one.instance_type),
        is_in_account=False,
    )


def _end(one: SeenMachine, *, planned: datetime) -> datetime:
    """When a machine that is gone ended: AWS's word; else the planned end, if it was there before and not after it.

    Else when it was first missed, which counts too much rather than too little.
    """
    if one.ended_at is not None:
        return max(one.ended_at, one.launched_at)
    last, first = _latest(one.launched_at, one.alive_at), one.gone_at or planned
    return planned if last <= planned <= first else max(first, last)


def _latest(*instants: datetime | None) -> datetime:
    return max(one for one in instants if one is not None)
