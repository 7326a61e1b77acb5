"""What an account still has of one cluster, read from the tags of its things. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterctl_infra.names import DEADLINE_TAG, NAME_TAG, NO_DEADLINE, OWNER_TAG, TRIAL_TAG

from clusterctl.cloud.delete_orphans import GUARDED
from clusterctl.cloud.resource import CloudResource, ResourceType, type_of
from clusterctl.cloud.resource_types import KINDS

UNNAMED = "?"


@dataclass(frozen=True, kw_only=True)
class Remains:
    """Everything of one cluster that was found."""

    cluster_id: str
    region: str | None
    """None where only things were found that are in no region, such as roles."""
    things: tuple[CloudResource, ...]
    """In the order in which they would be ended."""

    @property
    def name(self) -> str:
        """The name in its tags."""
        return self._tag(NAME_TAG)

    @property
    def owner(self) -> str:
        """The owner in its tags."""
        return self._tag(OWNER_TAG)

    @property
    def born_at(self) -> datetime | None:
        """When its oldest thing was made, as far as AWS says."""
        times = [resource.created_at for resource in self.things if resource.created_at is not None]
        return min(times, default=None)

    @property
    def deadline(self) -> datetime | None:
        """The latest in the tags of its parts, since some have the old one while an `extend` is under way.

        None if no part has one, or if one cannot be read. Tags that are never changed, and so have the deadline of
        their machine's birth, count only where no other part has one.
        """
        texts = _deadlines(_moved(self.things)) or _deadlines(self.things)
        times = [_instant(text) for text in texts if text != NO_DEADLINE]
        known = [at for at in times if at is not None]
        return max(known) if known and len(known) == len(times) else None

    @property
    def is_parked(self) -> bool:
        """Whether it has no machine on purpose, as its tags say: what is there is kept for the next `up`."""
        has_machines = any(resource.kind in GUARDED for resource in self.things)
        return not has_machines and self.says_none

    @property
    def is_trial(self) -> bool:
        """Whether it was made to ask AWS for capacity, and belongs to no cluster: its maker was killed meanwhile."""
        return any(TRIAL_TAG in resource.tags for resource in self.things)

    @property
    def says_none(self) -> bool:
        """Whether a part of it has no deadline on purpose; if machines run, an `up` after a `down` was cut off."""
        return any(resource.tags.get(DEADLINE_TAG) == NO_DEADLINE for resource in self.things)

    def _tag(self, tag: str) -> str:
        return next((resource.tags[tag] for resource in self.things if tag in resource.tags), UNNAMED)


def remains_of(
    found: Mapping[str, Iterable[CloudResource]], kinds: Sequence[ResourceType] = KINDS
) -> tuple[Remains, ...]:
    """What `found` (region → things) has of each cluster, by name and id.

    What is in no region, such as roles, is counted once, with the region of the rest of its cluster.
    """
    regions: dict[str, str] = {}
    things: dict[str, dict[tuple[str, str], CloudResource]] = {}
    for region, listed in found.items():
        for resource in listed:
            if resource.cluster_id is None:
                continue
            things.setdefault(resource.cluster_id, {})[resource.kind, resource.id] = resource
            if not type_of(resource, kinds).is_global:
                regions[resource.cluster_id] = region
    remains = (Remains(cluster_id=id, region=regions.get(id), things=tuple(own.values())) for id, own in things.items())
    return tuple(sorted(remains, key=lambda cluster: (cluster.name, cluster.cluster_id)))


def latest_of(things: Iterable[CloudResource]) -> datetime | None:
    """The latest readable deadline among those that an `extend` would have moved; None if there is none."""
    times = [_instant(text) for text in _deadlines(_moved(things))]
    return max((at for at in times if at is not None), default=None)


def _moved(things: Iterable[CloudResource]) -> list[CloudResource]:
    """The things whose tags follow the cluster's deadline."""
    return [resource for resource in things if not type_of(resource, KINDS).is_tagged_once]


def _deadlines(things: Iterable[CloudResource]) -> list[str]:
    return [resource.tags[DEADLINE_TAG] for resource in things if DEADLINE_TAG in resource.tags]


def _instant(text: str) -> datetime | None:
    """The instant in a tag; None for what is no time: nobody may end anything by a deadline that cannot be read."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
