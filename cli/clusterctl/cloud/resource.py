"""A thing in AWS that carries a cluster's id, and the kinds of things there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.boundary import Clients

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import FilterTypeDef


@dataclass(frozen=True, kw_only=True)
class Meter:
    """What a thing is billed by, as far as AWS says it when the thing is found."""

    unit: Literal["machine", "spot machine", "address", "NAT gateway", "endpoint", "disk GiB", "EFS GiB", "Lustre GiB"]
    amount: float = 1.0
    name: str = ""
    """The instance type of machines, the throughput in MB/s per TiB of Lustre (empty: scratch)."""
    zone: str = ""
    """The zone of a spot machine, since each zone has a price of its own; empty for all else."""


@dataclass(frozen=True, kw_only=True)
class CloudResource:
    """One resource that exists in AWS."""

    kind: str
    """As a person says it: `instance`, `elastic IP`."""
    id: str
    aliases: frozenset[str] = frozenset()
    """Other names under which a state may know it."""
    attached_to: str | None = None
    """It lives and dies with this other thing."""
    parent: str | None = None
    """The thing it is part of, needed to delete it."""
    created_at: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    """Its own tags; if it carries none, those of the thing it is part of, or the id in its name."""
    meter: Meter | None = None
    """None where it costs nothing."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster that it belongs to."""
        return self.tags.get(ID_TAG)


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """How things of one kind are found by the cluster's id, and ended."""

    name: str
    types: tuple[str, ...]
    """What they are called in a Pulumi state."""
    find: Callable[[Clients, str | None], Iterable[CloudResource]]
    """Things of the cluster with this id; None: of every cluster."""
    delete: Callable[[Clients, CloudResource], None]
    """Raises botocore's ClientError, also for a thing that is gone already."""
    bills: str | None
    """What it costs for as long as it exists; None when nothing."""
    is_data: bool = False
    """It holds what people made: never deleted by a repair unless the broken run itself made it."""
    leads_to_data: bool = False
    """Data is reached through it: while the data stays, AWS refuses to end it, or ending it cuts nodes off the data."""
    is_guard: bool = False
    """It ends machines at the deadline: it goes when there is nothing left that it would end."""
    is_tagged_once: bool = False
    """Its tags are set only when its machine is made: no `up` and no `extend` moves the deadline in them."""
    is_global: bool = False
    """It is in no region: every region shows it."""
    also_called: tuple[str, ...] = ()
    """The kinds of the things that this row finds, where they differ from `name`, such as `ingress rule`."""


Known = Mapping[str, frozenset[str]]
"""Resource type → every name under which a state knows things of that type. By type, because one name may serve several
types: a cluster's role, instance profile, key pair and placement group are all called `clusterctl-<id>`."""


def orphans(found: Iterable[CloudResource], known: Known, kinds: Sequence[ResourceType]) -> tuple[CloudResource, ...]:
    """The resources that are in no state and are not part of a resource in one."""
    anything = frozenset(name for names in known.values() for name in names)
    return tuple(
        resource
        for resource in found
        if not _is_known(resource, known, type_of(resource, kinds))
        and (resource.attached_to is None or resource.attached_to not in anything)
    )


def type_of(resource: CloudResource, kinds: Sequence[ResourceType]) -> ResourceType:
    """The row of the table `kinds` that a thing belongs to."""
    return next(kind for kind in kinds if resource.kind in (kind.name, *kind.also_called))


def _is_known(resource: CloudResource, known: Known, kind: ResourceType) -> bool:
    names = {name for type in kind.types for name in known.get(type, ())}
    return resource.id in names or bool(resource.aliases & names)


def by_id(cluster_id: str | None) -> FilterTypeDef:
    """EC2's filter for what carries this id (None: any id); never by name, which a colleague's cluster may share."""
    if cluster_id is None:
        return {"Name": "tag-key", "Values": [ID_TAG]}
    return {"Name": f"tag:{ID_TAG}", "Values": [cluster_id]}


def is_of(tags: Mapping[str, str], cluster_id: str | None) -> bool:
    """Whether these are the tags of something of this cluster (None: of any)."""
    return ID_TAG in tags and cluster_id in (None, tags[ID_TAG])
