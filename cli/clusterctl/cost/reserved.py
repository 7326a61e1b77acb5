"""What AWS itself said of a cluster's reservations, look by look: since when, for how many, until when. Pure.

AWS says when a reservation was made, but when it ended only if that is its end date: of a cancelled one it says only
that it is cancelled. So whatever cancels one here writes down when AWS agreed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl_infra.ledger import HIGHEST_SLOT
from clusterctl_infra.strict_json import Fields

from clusterctl.cloud.reservations import EXPIRED, ReservationState

NOTED_EVERY = timedelta(minutes=10)
"""How often a reservation or a machine that is still there is written down again: that bounds when it can have ended
unseen."""


@dataclass(frozen=True, kw_only=True)
class ReservationSighting:
    """One reservation at one look."""

    reservation_id: str
    instance_type: str
    places: int
    created_at: datetime
    ends_at: datetime | None
    """Its end date."""
    at: datetime
    """When AWS was asked, or agreed to end it."""
    is_held: bool
    ended_at: datetime | None = None
    """When it ended, if AWS said so, or agreed to cancel it; else None."""


@dataclass(frozen=True, kw_only=True)
class SeenReservation:
    """All looks at one reservation together."""

    reservation_id: str
    instance_type: str
    created_at: datetime
    places: tuple[tuple[datetime, int], ...]
    """(Since when, how many places): first since it was made, then since each look that showed a change."""
    ends_at: datetime | None
    held_at: datetime | None
    """The last look that found it held."""
    gone_at: datetime | None
    """The first look that found it ended."""
    ended_at: datetime | None

    def end(self, *, planned: datetime) -> datetime | None:
        """When it ended; None while it is held.

        If nobody named the instant: the end that was planned for the cluster, or the reservation's end date, if that
        lies between the last look that found it and the first that missed it; else the look that missed it, which
        counts too much rather than too little.
        """
        if self.ended_at is not None:
            return max(self.ended_at, self.created_at)
        if self.gone_at is None:
            return None
        last = max(self.created_at, self.held_at or self.created_at)
        likely = (
            instant for instant in (planned, self.ends_at) if instant is not None and last <= instant <= self.gone_at
        )
        return min(likely, default=self.gone_at)


def seen_reservations(sightings: Iterable[ReservationSighting]) -> dict[str, SeenReservation]:
    """Reservation id → reservation, whatever the order of the looks, and however often one is written down."""
    rows: dict[str, list[ReservationSighting]] = {}
    for sighting in sightings:
        rows.setdefault(sighting.reservation_id, []).append(sighting)
    return {id: _together(looks) for id, looks in rows.items()}


def reservation_news(
    known: Mapping[str, SeenReservation], found: Iterable[ReservationState], *, at: datetime
) -> tuple[ReservationSighting, ...]:
    """What a look adds to what is known; a reservation that AWS no longer shows has ended."""
    listed = {reservation.reservation_id: reservation for reservation in found}
    new = [
        _sighting(reservation, at=at) for id, reservation in listed.items() if _is_new(known.get(id), reservation, at)
    ]
    lost = (reservation for id, reservation in known.items() if id not in listed and reservation.gone_at is None)
    return (*new, *(ending(reservation, at=at) for reservation in lost))


def ending(reservation: SeenReservation, *, at: datetime, ended_at: datetime | None = None) -> ReservationSighting:
    """The sighting of a reservation's end; `ended_at`: when AWS agreed to cancel it, if it was cancelled here."""
    return ReservationSighting(
        reservation_id=reservation.reservation_id,
        instance_type=reservation.instance_type,
        places=reservation.places[-1][1],
        created_at=reservation.created_at,
        ends_at=reservation.ends_at,
        at=at,
        is_held=False,
        ended_at=ended_at,
    )


def resizing(reservation: SeenReservation, places: int, *, at: datetime) -> ReservationSighting:
    """The sighting of a reservation whose size was changed here."""
    return ReservationSighting(
        reservation_id=reservation.reservation_id,
        instance_type=reservation.instance_type,
        places=places,
        created_at=reservation.created_at,
        ends_at=reservation.ends_at,
        at=at,
        is_held=True,
    )


def reservation_to_json(sighting: ReservationSighting) -> dict[str, object]:
    """A JSON-able row; times as ISO 8601 with offset."""
    return {
        "reservation_id": sighting.reservation_id,
        "instance_type": sighting.instance_type,
        "places": sighting.places,
        "created_at": sighting.created_at.isoformat(),
        "ends_at": _text(sighting.ends_at),
        "at": sighting.at.isoformat(),
        "held": sighting.is_held,
        "ended_at": _text(sighting.ended_at),
    }


def reservation_from_json(row: Mapping[str, object]) -> ReservationSighting:
    """The sighting that `reservation_to_json` wrote; raises NotAsExpected on other shapes."""
    fields = Fields(row)
    return ReservationSighting(
        reservation_id=fields.text("reservation_id", most=100),
        instance_type=fields.text("instance_type", most=100),
        places=fields.whole("places", high=HIGHEST_SLOT),
        created_at=fields.moment("created_at"),
        ends_at=fields.moment_or_none("ends_at"),
        at=fields.moment("at"),
        is_held=fields.flag("held"),
        ended_at=fields.moment_or_none("ended_at"),
    )


def _sighting(reservation: ReservationState, *, at: datetime) -> ReservationSighting:
    return ReservationSighting(
        reservation_id=reservation.reservation_id,
        instance_type=reservation.instance_type,
        places=reservation.places,
        created_at=reservation.created_at,
        ends_at=reservation.ends_at,
        at=at,
        is_held=reservation.is_held,
        ended_at=reservation.ends_at if reservation.state == EXPIRED else None,
    )


def _together(looks: list[ReservationSighting]) -> SeenReservation:
    looks = sorted(looks, key=lambda look: (look.at, look.places, look.is_held))
    held = [look for look in looks if look.is_held] or looks[:1]
    first, last = held[0], held[-1]
    changes = [look for before, look in itertools.pairwise(held) if look.places != before.places]
    held_at = max((look.at for look in looks if look.is_held), default=None)
    return SeenReservation(
        reservation_id=first.reservation_id,
        instance_type=first.instance_type,
        created_at=first.created_at,
        places=((first.created_at, first.places), *((look.at, look.places) for look in changes)),
        ends_at=last.ends_at,
        held_at=held_at,
        # A look may miss a reservation that is there: EC2's answers are eventually consistent.
        gone_at=min((look.at for look in looks if not look.is_held and (held_at or look.at) <= look.at), default=None),
        ended_at=min((look.ended_at for look in looks if look.ended_at is not None), default=None),
    )


def _is_new(known: SeenReservation | None, reservation: ReservationState, at: datetime) -> bool:
    if known is None:
        return True
    if not reservation.is_held:
        return known.gone_at is None or (known.ended_at is None and reservation.state == EXPIRED)
    is_changed = (known.places[-1][1], known.ends_at) != (reservation.places, reservation.ends_at)
    return is_changed or known.held_at is None or at - known.held_at >= NOTED_EVERY


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
