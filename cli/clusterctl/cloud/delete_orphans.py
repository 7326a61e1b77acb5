"""Ends what carries a cluster's id and is in no state, until nothing more appears."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.deletion_attempts import Agreed, DeletionAttempts, Key, key_of, nobody_asks
from clusterctl.cloud.look import NotListed, look_at_each, named
from clusterctl.cloud.machine_resources import RESERVATION
from clusterctl.cloud.resource import CloudResource, Known, ResourceType, orphans, type_of
from clusterctl.cloud.resource_types import KINDS

LOOKS = 2
"""How many looks in a row have to find nothing: what a killed engine asked for may still be on its way."""
NOT_ENDED = "NotEnded"
"""The code of the error about things that AWS did not let go in time."""
GUARDED = ("instance", RESERVATION)
"""Kinds that a cluster's guard ends at the deadline."""
KnownNow = Callable[[], Known]
"""Gives what the states know at this moment; raises while a run is changing that."""


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """What was ended, what was spared, and what should have been ended but is still there."""

    ended: tuple[CloudResource, ...]
    left: tuple[CloudResource, ...]
    not_ended: tuple[CloudResource, ...] = ()
    refusals: Mapping[Key, str] = field(default_factory=dict)
    """AWS's last error code for a thing in `not_ended`, or the name of botocore's error if AWS did not answer. A thing
    that AWS agreed to end, and that is still on its way out, has none."""
    not_listed: NotListed = field(default_factory=dict)
    """Kinds that AWS did not list at the last look: what is left of them is not known, and was not ended."""

    def named(self, resource: CloudResource) -> str:
        """A thing in `not_ended`, with AWS's code."""
        code = self.refusals.get(key_of(resource))
        return f"{resource.kind} {resource.id}" + (f" ({code})" if code else "")


def delete_orphans(
    clients: Clients,
    cluster_id: str,
    known: Known,
    *,
    data_since: datetime | None,
    pause: Callable[[], None],
    timeout_s: float,
    tell: Callable[[str], None],
    agreed: Agreed = nobody_asks,
    known_now: KnownNow | None = None,
    kinds: Sequence[ResourceType] = KINDS,
) -> Deletion:
    """Ends all orphans; data only when made after `data_since`. Raises CloudError, also if some are left in the end.

    `known_now`: as for `end_all`.
    """
    deletion = end_all(
        clients,
        cluster_id,
        known,
        spares=lambda resource: _is_kept(resource, data_since, kinds),
        pause=pause,
        timeout_s=timeout_s,
        tell=tell,
        agreed=agreed,
        known_now=known_now,
        kinds=kinds,
    )
    if deletion.not_ended:
        left = ", ".join(deletion.named(resource) for resource in deletion.not_ended)
        unknown = (
            f"; AWS did not say whether it has: {', '.join(named(deletion.not_listed))}" if deletion.not_listed else ""
        )
        message = f"not ended in {timeout_s:.0f} s: {left}{unknown}; run the same command again"
        raise CloudError(message, code=NOT_ENDED, hint=_look_by_hand(clients, cluster_id))
    return deletion


def end_all(
    clients: Clients,
    cluster_id: str,
    known: Known,
    *,
    spares: Callable[[CloudResource], bool],
    pause: Callable[[], None],
    timeout_s: float,
    tell: Callable[[str], None],
    look_again: Callable[[Sequence[CloudResource]], None] = lambda things: None,
    agreed: Agreed = nobody_asks,
    known_now: KnownNow | None = None,
    kinds: Sequence[ResourceType] = KINDS,
) -> Deletion:
    """Ends all orphans except those that `spares` picks. Raises CloudError when AWS does not answer at all.

    A thing that AWS refuses to end because another thing needs it is tried again until the time is over; one that AWS
    refuses for good, only until nothing else is left. So a network with something in it that AWS does not list is kept
    by AWS's own refusal. `look_again` gets all that is there before each round, and raises to stop the deletion.
    `known_now` is called after a look that shows a new orphan, and before that orphan is ended. If a run that began
    meanwhile made it, then either that run is still under way, or the thing is in a state by now. What is made later
    was not seen by this look.
    """
    give_up = time.monotonic() + timeout_s
    tries = DeletionAttempts(clients, cluster_id, kinds)
    quiet = 0
    while True:
        seen = look_at_each(clients, cluster_id, kinds).raise_if_blind()
        there, unknown = seen.things, seen.not_listed
        look_again(there)
        rest, spared = _parted(orphans(there, known, kinds), spares)
        if known_now is not None and any(tries.is_new(resource) for resource in due(rest, kinds, unknown)):
            known = known_now()
            rest, spared = _parted(orphans(there, known, kinds), spares)
        quiet = 0 if rest else quiet + 1
        now_due = due(rest, kinds, unknown)
        were_tried = bool(rest) and tries.were_asked(now_due)
        is_hopeless = were_tried and tries.are_hopeless(now_due, [unknown[kind] for kind in unguarded(unknown)])
        if quiet >= LOOKS or is_hopeless or (were_tried and time.monotonic() > give_up):
            return Deletion(
                ended=tries.gone(rest, unknown),
                left=spared,
                not_ended=rest,
                refusals=tries.refusals,
                not_listed=unknown,
            )
        tries.end(now_due, tell=tell, agreed=agreed)
        pause()


def _parted(
    lost: Iterable[CloudResource], spares: Callable[[CloudResource], bool]
) -> tuple[tuple[CloudResource, ...], tuple[CloudResource, ...]]:
    """The orphans to end, and those to spare."""
    listed = tuple(lost)
    spared = tuple(resource for resource in listed if spares(resource))
    return tuple(resource for resource in listed if resource not in spared), spared


def due(
    rest: Iterable[CloudResource], kinds: Sequence[ResourceType] = KINDS, not_listed: Iterable[str] = ()
) -> tuple[CloudResource, ...]:
    """What is ended now: guards only when nothing is there any more that they would end, should all else fail.

    `not_listed`: kinds that AWS does not list: there may be a machine, or a reservation, that nobody sees.
    """
    listed = tuple(rest)
    if any(resource.kind in GUARDED for resource in listed) or unguarded(not_listed):
        return tuple(resource for resource in listed if not type_of(resource, kinds).is_guard)
    return listed


def unguarded(not_listed: Iterable[str]) -> tuple[str, ...]:
    """The kinds for which it is not known whether a guard still has something to end."""
    return tuple(kind for kind in not_listed if kind in GUARDED)


def _look_by_hand(clients: Clients, cluster_id: str) -> str:
    """The command that lists what carries the id."""
    if clients.is_rehearsal:
        return "clusterctl rehearse list"
    words = f"--region {clients.region} --tag-filters Key={ID_TAG},Values={cluster_id}"
    return f"aws resourcegroupstaggingapi get-resources {words}"


def _is_kept(resource: CloudResource, data_since: datetime | None, kinds: Sequence[ResourceType]) -> bool:
    if not type_of(resource, kinds).is_data:
        return False
    return data_since is None or resource.created_at is None or resource.created_at < data_since
