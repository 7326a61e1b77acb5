"""What AWS itself said of a cluster's machines, look by look: when each was launched, when it ended. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl_infra.ledger import HIGHEST_SLOT
from clusterctl_infra.strict_json import Fields

from clusterctl.cloud.instances import InstanceState
from clusterctl.cost.reserved import NOTED_EVERY, SeenReservation


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """One machine at one look."""

    instance_id: str
    slot: int | None
    instance_type: str | None
    launched_at: datetime
    at: datetime
    """When AWS was asked."""
    is_alive: bool
    ended_at: datetime | None
    """When its end began, if AWS says so; from then on it does not bill."""
    is_spot: bool = False


@dataclass(frozen=True, kw_only=True)
class SeenMachine:
    """All looks at one machine together."""

    instance_id: str
    slot: int | None
    instance_type: str | None
    launched_at: datetime
    ended_at: datetime | None
    alive_at: datetime | None
    """The last look that found it alive."""
    gone_at: datetime | None
    """The first look that found it gone."""
    is_spot: bool = False
    """Whether it is a spot machine, for which no place was reserved: when it is gone, nothing bills."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """All that AWS said of machines and reservations, and list prices of types for which no ledger has a price."""

    machines: Mapping[str, SeenMachine] = field(default_factory=dict)
    """By instance id."""
    reservations: Mapping[str, SeenReservation] = field(default_factory=dict)
    """By reservation id."""
    usd_per_hour: Mapping[str, float | None] = field(default_factory=dict)
    """By instance type; None is unknown."""


NOTHING_OBSERVED = Observed()


def seen_machines(sightings: Iterable[Sighting]) -> dict[str, SeenMachine]:
    """Instance id → machine, whatever the order of the looks, and however often one is written down."""
    rows: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        rows.setdefault(sighting.instance_id, []).append(sighting)
    return {id: _together(looks) for id, looks in rows.items()}


def news(known: Mapping[str, SeenMachine], instances: Iterable[InstanceState], *, at: datetime) -> tuple[Sighting, ...]:
    """What a look adds to what is known; an instance without a launch time is left out.

    `instances`: all that AWS shows, including those that ended within about the last hour. One that it no longer shows
    ended before that, unless it was made a moment ago: a list may miss it.
    """
    listed = {instance.instance_id: instance for instance in instances}
    new = [
        Sighting(
            instance_id=instance.instance_id,
            slot=instance.slot,
            instance_type=instance.instance_type,
            launched_at=instance.launched_at,
            at=at,
            is_alive=instance.is_alive,
            ended_at=instance.ended_at,
            is_spot=instance.is_spot,
        )
        for instance in listed.values()
        if instance.launched_at is not None and _is_new(known.get(instance.instance_id), instance, at)
    ]
    lost = (machine for id, machine in known.items() if id not in listed and _is_lost(machine, at))
    return (*new, *(_missed(machine, at) for machine in lost))


def sighting_to_json(sighting: Sighting) -> dict[str, object]:
    """A JSON-able row; times as ISO 8601 with offset."""
    return {
        "instance_id": sighting.instance_id,
        "slot": sighting.slot,
        "instance_type": sighting.instance_type,
        "launched_at": sighting.launched_at.isoformat(),
        "at": sighting.at.isoformat(),
        "alive": sighting.is_alive,
        "ended_at": None if sighting.ended_at is None else sighting.ended_at.isoformat(),
        "spot": sighting.is_spot,
    }


def sighting_from_json(row: Mapping[str, object]) -> Sighting:
    """The sighting that `sighting_to_json` wrote; raises NotAsExpected on other shapes."""
    fields = Fields(row)
    return Sighting(
        instance_id=fields.text("instance_id", most=100),
        slot=fields.whole("slot", high=HIGHEST_SLOT) if fields.has("slot") else None,
        instance_type=fields.text_or_none("instance_type", most=100),
        launched_at=fields.moment("launched_at"),
        at=fields.moment("at"),
        is_alive=fields.flag("alive"),
        ended_at=fields.moment_or_none("ended_at"),
        is_spot=fields.flag("spot"),
    )


def _together(looks: list[Sighting]) -> SeenMachine:
    # A machine that is stopped and started has a new launch time; it was the cluster's since the first.
    first = min(looks, key=lambda look: (look.launched_at, look.at))
    alive_at = max((look.at for look in looks if look.is_alive), default=None)
    return SeenMachine(
        instance_id=first.instance_id,
        slot=first.slot,
        instance_type=first.instance_type,
        launched_at=first.launched_at,
        ended_at=min((look.ended_at for look in looks if look.ended_at is not None), default=None),
        alive_at=alive_at,
        # A machine that was missing in a list and is there again was never gone.
        gone_at=min(
            (look.at for look in looks if not look.is_alive and (alive_at or look.at) <= look.at), default=None
        ),
        is_spot=any(look.is_spot for look in looks),
    )


def _is_new(known: SeenMachine | None, instance: InstanceState, at: datetime) -> bool:
    if known is None:
        return True
    if instance.is_alive:
        return known.alive_at is None or at - known.alive_at >= NOTED_EVERY
    return known.gone_at is None or (known.ended_at is None and instance.ended_at is not None)


def _is_lost(known: SeenMachine, at: datetime) -> bool:
    return known.gone_at is None and at - (known.alive_at or known.launched_at) >= NOTED_EVERY


def _missed(known: SeenMachine, at: datetime) -> Sighting:
    """The sighting of a machine that a look did not find any more: nobody knows since when it has been gone."""
    return Sighting(
        instance_id=known.instance_id,
        slot=known.slot,
        instance_type=known.instance_type,
        launched_at=known.launched_at,
        at=at,
        is_alive=False,
        ended_at=None,
        is_spot=known.is_spot,
    )
