"""Which cluster may be ended, which of its things then go, and why the others stay. Pure.

Before its deadline nothing but the cluster itself ends it, unless a person names it. That this computer does not know a
cluster is no reason to end it: it is a colleague's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from clusterctl.cloud.delete_orphans import GUARDED
from clusterctl.cloud.resource import CloudResource, ResourceType, type_of
from clusterctl.cloud.resource_types import KINDS
from clusterctl.cloud.storage_resources import DATA_KINDS
from clusterctl.reap.remains import Remains, latest_of
from clusterctl.text.quantities import clock, duration

FILE_SYSTEMS = tuple(kind.name for kind in DATA_KINDS)
"""The kinds of data that are reached through the cluster's network; a volume is not."""
PARKED = "down on purpose, for another up"


@dataclass(frozen=True, kw_only=True)
class KnownHere:
    """A cluster that this computer has an inventory of."""

    cluster: str
    """With `@rehearsal` at its end in a rehearsal."""
    deadline: datetime | None
    is_down: bool
    """Zero nodes on purpose: what is there is kept for the next `up`."""
    changing: str | None = None
    """The run that is changing it now, `up (pid 123)`."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a person asked for."""

    grace: timedelta
    clusters: frozenset[str] = frozenset()
    """Ids of clusters to end whatever their deadline."""
    data: frozenset[str] = frozenset()
    """Ids of file systems and volumes to end with their clusters."""
    anyones: bool = False
    """Clusters that this computer does not know, too, once they are past their deadlines."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was judged about one cluster."""

    remains: Remains
    known: KnownHere | None
    ends: bool
    reason: str
    hint: str | None = None
    """The command that would end it, where this `reap` does not."""
    data: frozenset[str] = frozenset()
    """Ids of data that goes with it."""
    keeps_file_systems: bool = False
    """A file system of it stays, or may be there unseen, so what leads to it stays, too."""
    not_listed: frozenset[str] = frozenset()
    """Kinds that AWS does not list in its region: nobody knows what it has of them."""

    def why_stays(self, resource: CloudResource, kinds: Sequence[ResourceType] = KINDS) -> str | None:
        """Why a thing of a cluster that ends is left alone; None when it goes. Also for things that appear later."""
        kind = type_of(resource, kinds)
        if resource.attached_to is not None:
            return f"goes with {resource.attached_to}"
        if kind.is_data and resource.id not in self.data:
            return f"holds data: --data {resource.id} ends it"
        if kind.leads_to_data and self.keeps_file_systems:
            return "leads to data that stays"
        return None

    @property
    def going(self) -> tuple[CloudResource, ...]:
        """What is ended."""
        return tuple(resource for resource in self.remains.things if self.ends and self.why_stays(resource) is None)


def judge(
    remains: Remains,
    asked: Asked,
    known: KnownHere | None,
    *,
    now: datetime,
    all_regions: bool,
    not_listed: frozenset[str] = frozenset(),
) -> Verdict:
    """The verdict about one cluster.

    `not_listed`: kinds that AWS does not list. They keep no machine running: AWS itself refuses to delete the parts of
    a network that they need. If file systems are among them, the rules and interfaces that lead to these stay.
    """
    ends, reason, hint = _judged(remains, asked, known, now=now, all_regions=all_regions)
    if not ends:
        return Verdict(remains=remains, known=known, ends=False, reason=reason, hint=hint, not_listed=not_listed)
    systems = {resource.id for resource in remains.things if resource.kind in FILE_SYSTEMS}
    return Verdict(
        remains=remains,
        known=known,
        ends=True,
        reason=reason,
        data=asked.data,
        keeps_file_systems=not systems <= asked.data or not not_listed.isdisjoint(FILE_SYSTEMS),
        not_listed=not_listed,
    )


def spared_since(
    verdict: Verdict, things: Sequence[CloudResource], asked: Asked, known: KnownHere | None, *, now: datetime
) -> str | None:
    """Why a cluster that was to end is left alone after all; `things` and `known` as they are now.

    Ending the clusters before it takes minutes, in which a colleague may extend this one or bring it up anew. An `up`
    on another computer is only seen by what it makes: a named cluster ends only if it got no machine or reservation
    since it was shown.
    """
    if known is not None and known.changing is not None:
        return f"left alone: {known.changing} is changing it now"
    if verdict.remains.cluster_id in asked.clusters and (new := _made_since(verdict.remains, things)) is not None:
        return f"left alone: {new.kind} {new.id} was made while this looked, as by an up under way: look again first"
    if verdict.remains.cluster_id in asked.clusters:
        return None
    current = replace(verdict.remains, things=tuple(things))
    if (known is not None and known.is_down) or (current.is_parked and not verdict.remains.says_none):
        return f"left alone: it was taken {PARKED} while this looked"
    deadline = latest_of(things)
    if deadline is not None and now < deadline + asked.grace:
        return f"left alone: its deadline was moved to {clock(deadline, now)} while this looked"
    return None


def _judged(
    remains: Remains, asked: Asked, known: KnownHere | None, *, now: datetime, all_regions: bool
) -> tuple[bool, str, str | None]:
    """Whether the cluster ends, why, and the command that would end it if it does not."""
    id, deadline = remains.cluster_id, latest_deadline(remains, known)
    name_it = f"clusterctl reap --cluster {id}"
    if known is not None and known.changing is not None:
        return False, f"{known.changing} is changing it now", None
    if remains.region is None and not all_regions:
        return False, "only what is in no region was found: its machines may run in another", f"{name_it} --all-regions"
    if id in asked.clusters:
        return True, "named", None
    if known is not None and known.is_down:
        return False, PARKED, f"clusterctl down --cluster {known.cluster} --all"
    if remains.is_parked:
        return False, PARKED, name_it
    if deadline is None:
        return False, "no part of it says a deadline that can be read", name_it
    if now < deadline + asked.grace:
        passed = now >= deadline
        when = f"{clock(deadline, now)}" + (f", {duration(asked.grace)} of grace" if passed else "")
        return False, f"its deadline {'was' if passed else 'is'} {when}", None
    late = f"{duration(now - deadline)} past its deadline"
    if remains.is_trial:
        return True, f"{late}: asked for room, and cut off", None
    if known is None and not asked.anyones:
        return False, f"{late}, and unknown on this computer: a colleague's", name_it
    return True, late, None


def _made_since(remains: Remains, things: Sequence[CloudResource]) -> CloudResource | None:
    """A machine or a reservation that was not there when the cluster was shown."""
    shown = {(resource.kind, resource.id) for resource in remains.things}
    return next(
        (resource for resource in things if resource.kind in GUARDED and (resource.kind, resource.id) not in shown),
        None,
    )


def latest_deadline(remains: Remains, known: KnownHere | None) -> datetime | None:
    """The later one of what the tags say and what this computer knows; None when the tags cannot be read."""
    if remains.deadline is None or known is None or known.deadline is None:
        return remains.deadline
    return max(remains.deadline, known.deadline)
