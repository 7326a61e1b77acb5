"""What was paid for in each slot: the ledger, put right by what AWS said of the machines. Pure.

The ledger's instants are too early: it counts from a run's start and to the instant that a change was planned for.
Where AWS said when a machine was launched or ended, that counts instead; machines that AWS showed and no ledger has are
added. Empty places of a reservation are paid for, too: as AWS described the reservation, or, where it said nothing, for
as long as the ledger takes the slot to be reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from clusterctl_infra.ledger import Span

from clusterctl.cost.places import Paid, empty_places
from clusterctl.cost.reserved import SeenReservation
from clusterctl.cost.sighting import Observed, SeenMachine


def reconcile(
    spans: Sequence[Span],
    observed: Observed,
    *,
    alive: frozenset[str] | None,
    deadline: datetime,
    now: datetime,
    is_reserved: bool | None = None,
) -> tuple[Paid, ...]:
    """What was paid for, machines and empty places; a span of which nothing was observed stays as it is.

    `alive`: the instances that AWS says run; `is_reserved`: whether it says that places are held for them; None: it did
    not answer.
    """
    seen = observed.machines
    over_at = released_at(observed, is_reserved=is_reserved, deadline=deadline, now=now)
    pairs = [
        (span, _machine(span, seen.get(span.instance_id), alive, deadline=deadline, over_at=over_at, now=now))
        for span in spans
    ]
    known = {span.instance_id for span in spans}
    strays = [
        _stray(machine, observed, alive, deadline, now) for id, machine in sorted(seen.items()) if id not in known
    ]
    machines = [*(paid for _, paid in pairs), *strays]
    spot = {id for id, machine in seen.items() if machine.is_spot}
    held = [(span, paid) for span, paid in pairs if span.instance_id not in spot]
    assumed = [place for span, paid in held if (place := _empty_place(span, paid, held, deadline)) is not None]
    reserved = sorted(observed.reservations.values(), key=lambda reservation: reservation.created_at)
    until = reserved[0].created_at if reserved else over_at
    return (
        *machines,
        *(cut for place in assumed if (cut := _cut(place, until)) is not None),
        *(
            place
            for reservation in reserved
            for place in empty_places(
                reservation, machines, planned=deadline, price=_price(reservation, pairs, observed, deadline)
            )
        ),
    )


def released_at(observed: Observed, *, is_reserved: bool | None, deadline: datetime, now: datetime) -> datetime | None:
    """Since when no place is held any more; None while one is, or if nobody knows."""
    ends = [reservation.end(planned=deadline) for reservation in observed.reservations.values()]
    if any(end is None for end in ends) or is_reserved:
        return None
    if not ends:
        return min(now, deadline) if is_reserved is False else None
    return max(end for end in ends if end is not None)


def all_gone_at(observed: Observed, *, is_reserved: bool | None, deadline: datetime, now: datetime) -> datetime | None:
    """Since when there has been neither a machine nor a place for one; None while a place is held, or if nobody knows.

    The caller knows that no machine lives.
    """
    over_at = released_at(observed, is_reserved=is_reserved, deadline=deadline, now=now)
    ends = [machine.ended_at or machine.gone_at for machine in observed.machines.values()]
    return None if over_at is None else max([over_at, *(end for end in ends if end is not None)])


def _machine(
    span: Span,
    machine: SeenMachine | None,
    alive: frozenset[str] | None,
    *,
    deadline: datetime,
    over_at: datetime | None,
    now: datetime,
) -> Paid:
    """What was paid for a machine of the ledger; `over_at`: since when no place is held any more."""
    start, end = span.started_at, span.ended_at
    is_gone = alive is not None and span.instance_id not in alive
    if machine is not None:
        start = machine.launched_at
        if machine.ended_at is not None or machine.gone_at is not None:
            end = _end(machine, planned=(deadline,) if end is None else (end, deadline))
        elif end is not None:
            # The ledger closed it, and nobody saw it go: it ran at least as long as it was seen.
            runs = alive is not None and machine.instance_id in alive
            end = None if runs else _latest(end, start, machine.alive_at)
    if end is None and is_gone and over_at is not None:
        # Nobody saw it end. Its place was paid for until `over_at`, with or without it, and it may have outlived that.
        # Where only the reservation of an earlier run was seen, nobody knows more than that it is gone now.
        end = _latest(over_at if over_at > start else now, start, None if machine is None else machine.alive_at)
    return Paid(
        slot=span.slot,
        instance_id=span.instance_id,
        started_at=start,
        ended_at=end,
        is_start_seen=machine is not None,
        is_end_seen=machine is not None and machine.ended_at is not None,
        usd_per_hour=span.price_usd_per_hour,
        instance_type=None if machine is None else machine.instance_type,
    )


def _empty_place(span: Span, paid: Paid, pairs: Iterable[tuple[Span, Paid]], deadline: datetime) -> Paid | None:
    """The slot's place after its machine ended, reserved until the next machine, or until the ledger closed it; None if
    it was not empty.
    """
    began = paid.ended_at
    if began is None or paid.ended_at == span.ended_at:
        return None
    until, is_seen = span.ended_at, False
    if until is not None:
        following = (later for old, later in pairs if old.slot == span.slot and old.started_at == span.ended_at)
        successor = min(following, key=lambda machine: machine.started_at, default=None)
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
    machine: SeenMachine, observed: Observed, alive: frozenset[str] | None, deadline: datetime, now: datetime
) -> Paid:
    """What was paid for a machine in no ledger, such as one of an `up` that was killed before writing it down."""
    end = None
    if machine.ended_at is not None or machine.gone_at is not None:
        end = _end(machine, planned=(deadline,))
    elif alive is not None and machine.instance_id not in alive:
        end = _latest(min(deadline, now), machine.launched_at, machine.alive_at)
    return Paid(
        slot=machine.slot,
        instance_id=machine.instance_id,
        started_at=machine.launched_at,
        ended_at=end,
        is_start_seen=True,
        is_end_seen=machine.ended_at is not None,
        usd_per_hour=None if machine.instance_type is None else observed.usd_per_hour.get(machine.instance_type),
        is_in_ledger=False,
        instance_type=machine.instance_type,
    )


def _cut(place: Paid, until: datetime | None) -> Paid | None:
    """The assumed place, cut off at `until`, from which on more is known: the first reservation seen, or its end."""
    if until is None:
        return place
    if place.started_at >= until:
        return None
    return replace(place, ended_at=min(place.ended_at or until, until), is_end_seen=False)


def _price(
    reservation: SeenReservation, pairs: Iterable[tuple[Span, Paid]], observed: Observed, deadline: datetime
) -> float | None:
    """What a place in the reservation costs: as much as the last machine in it, else the list price of its type."""
    end = reservation.end(planned=deadline)
    inside = [
        span
        for span, paid in pairs
        if paid.instance_type in (None, reservation.instance_type) and (end is None or span.started_at <= end)
    ]
    if inside:
        return max(inside, key=lambda span: span.started_at).price_usd_per_hour
    return observed.usd_per_hour.get(reservation.instance_type)


def _end(machine: SeenMachine, *, planned: Iterable[datetime]) -> datetime:
    """When a machine that is gone ended: the instant that AWS named.

    Else the first planned end that lies between the last look that found it and the first that missed it; else the
    look that missed it, which counts too much rather than too little.
    """
    if machine.ended_at is not None:
        return max(machine.ended_at, machine.launched_at)
    last = _latest(machine.launched_at, machine.alive_at)
    missed = max(last, machine.gone_at or last)
    return min((at for at in planned if last <= at <= missed), default=missed)


def _latest(*instants: datetime | None) -> datetime:
    return max(instant for instant in instants if instant is not None)
