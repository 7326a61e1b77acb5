"""One look at what carries a cluster's id: if AWS does not list one kind of resource, the others are found anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from clusterctl_infra.errors import CloudError

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.resource import CloudResource, ResourceType
from clusterctl.cloud.resource_types import KINDS

PARALLEL_LOOKS = 8
UNKNOWN_REST = "it is not known whether everything is gone: AWS did not list every kind of resource"
NotListed = Mapping[str, CloudError]
"""Kind → why AWS did not list it: a right is missing, or the region has no such service."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was found, and which kinds AWS did not list."""

    things: tuple[CloudResource, ...]
    """In the order in which they would be ended."""
    not_listed: NotListed = field(default_factory=dict)
    is_blind: bool = False
    """Whether AWS listed no kind at all."""

    def raise_if_blind(self) -> Look:
        """This look, if AWS listed any kind. Raises CloudError if AWS listed none at all."""
        if self.is_blind:
            raise next(iter(self.not_listed.values()))
        return self


def look(clients: Clients, cluster_id: str | None, kinds: Sequence[ResourceType] = KINDS) -> tuple[CloudResource, ...]:
    """Everything that carries the id (None: any id). Raises CloudError if there is a kind that AWS does not list."""
    seen = look_at_each(clients, cluster_id, kinds)
    for refusal in seen.not_listed.values():
        raise refusal
    return seen.things


def look_at_each(clients: Clients, cluster_id: str | None, kinds: Sequence[ResourceType] = KINDS) -> Look:
    """Everything that carries the id (None: any id), as far as AWS lists it.

    Raises CloudError if no client can be made, as for an AWS profile that does not exist.
    """
    with aws_errors(f"looking for what belongs to {cluster_id or 'clusters'} in {clients.region}"):
        clients.warm_up()
    with ThreadPoolExecutor(max_workers=PARALLEL_LOOKS) as pool:
        answers = list(pool.map(lambda kind: _of_kind(clients, cluster_id, kind), kinds))
    not_listed = {
        kind.name: answer for kind, answer in zip(kinds, answers, strict=True) if isinstance(answer, CloudError)
    }
    things = (resource for answer in answers if not isinstance(answer, CloudError) for resource in answer)
    is_blind = bool(not_listed) and len(not_listed) == len(kinds)
    return Look(things=tuple(things), not_listed=not_listed, is_blind=is_blind)


def named(not_listed: NotListed) -> list[str]:
    """`FSx file system (AccessDeniedException)` for each."""
    return [f"{kind} ({refusal.code})" for kind, refusal in not_listed.items()]


def _of_kind(clients: Clients, cluster_id: str | None, kind: ResourceType) -> tuple[CloudResource, ...] | CloudError:
    """The resources of one kind, or why AWS does not list them; those of other clusters are left out even if AWS
    ignored the filter.

    This matters because what is found is ended: a stand-in for EC2 was seen to accept a filter by tag and ignore it
    (moto 5.2).
    """
    try:
        with aws_errors(f"looking for each {kind.name} of {cluster_id or 'clusters'} in {clients.region}"):
            found = tuple(kind.find(clients, cluster_id))
    except CloudError as refusal:
        return refusal
    return tuple(
        resource for resource in found if None in (cluster_id, resource.cluster_id) or resource.cluster_id == cluster_id
    )
