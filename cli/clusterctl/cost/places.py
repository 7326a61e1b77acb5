"""The reserved places in which nothing ran, from when to when: they bill as if a machine were in them. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterctl.cost.reserved import SeenReservation

FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class _Empty:
    """A place of a slot that is empty between two instants; `until` is FAR if it is still empty."""

    slot: int
    began: datetime
    until: datetime


def empty_places(
    reservation: SeenReservation, machines: Iterable[Paid], *, planned: datetime, price: float | None
) -> tuple[Paid, ...]:
    """The empty places of a reservation: each of `machines` that has its type was in it for as long as it lived.

    An empty place counts for the lowest slot that has no machine. `planned`: when the cluster was to end.
    """
    inside = [machine for machine in machines if machine.instance_type in (None, reservation.instance_type)]
    seen = {reservation.created_at, *_seen_instants(inside)}
    if reservation.ended_at is not None:
        seen.add(reservation.ended_at)
    return tuple(
        Paid(
            slot=place.slot,
            instance_id=None,
            started_at=place.began,
            ended_at=None if place.until == FAR else place.until,
            is_start_seen=place.began in seen,
            is_end_seen=place.until in seen,
            usd_per_hour=price,
        )
        for place in _joined(_intervals(reservation, inside, reservation.end(planned=planned) or FAR))
    )


def _intervals(reservation: SeenReservation, inside: Sequence[Paid], end: datetime) -> Iterator[_Empty]:
    began = reservation.created_at
    moments = {began, end, *(at for at, _ in reservation.places)}
    moments |= {at for machine in inside for at in (machine.started_at, machine.ended_at or FAR)}
    for start, stop in itertools.pairwise(sorted(at for at in moments if began <= at <= end)):
        held = [count for at, count in reservation.places if at <= start][-1]
        there = [machine for machine in inside if machine.started_at <= start and (machine.ended_at or FAR) >= stop]
        taken = {machine.slot for machine in there}
        free = (slot for slot in itertools.count() if slot not in taken)
        for slot in itertools.islice(free, max(0, held - len(there))):
            yield _Empty(slot=slot, began=start, until=stop)


def _joined(rows: Iterable[_Empty]) -> list[_Empty]:
    """The rows by slot and time, those joined that follow each other without a gap."""
    joined: list[_Empty] = []
    for row in sorted(rows, key=lambda place: (place.slot, place.began)):
        if joined and (joined[-1].slot, joined[-1].until) == (row.slot, row.began):
            joined[-1] = _Empty(slot=row.slot, began=joined[-1].began, until=row.until)
        else:
            joined.append(row)
    return joined


def _seen_instants(machines: Iterable[Paid]) -> Iterator[datetime]:
    """The starts and ends of machines that AWS named."""
    for machine in machines:
        if machine.is_start_seen:
            yield machine.started_at
        if machine.is_end_seen and machine.ended_at is not None:
            yield machine.ended_at


@dataclass(frozen=True, kw_only=True)
class Paid:
    """From when to when something was paid for, and at what rate."""

    slot: int | None
    instance_id: str | None
    """None: an empty place."""
    started_at: datetime
    ended_at: datetime | None
    """None: no end is known."""
    is_start_seen: bool
    """Whether AWS itself named the instant; if not, it is assumed."""
    is_end_seen: bool
    usd_per_hour: float | None
    is_in_ledger: bool = True
    instance_type: str | None = None
    """None: nobody saw the machine."""
