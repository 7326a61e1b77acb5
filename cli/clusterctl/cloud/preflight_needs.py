"""What an `up` will ask of AWS, and so what a preflight asks about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl_infra.catalog.instance import InstanceType


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What an `up` will ask of AWS."""

    region: str
    zone: str | None
    """None: not chosen yet."""
    types: tuple[InstanceType, ...]
    """The nodes' one type, or all of a list."""
    nodes: int
    machines: int
    """How many machines are to be made for the nodes."""
    market: str
    image: str
    """An AMI id, or the SSM parameter that has one."""
    root_disk_gib: int
    addresses: int
    """Elastic IPs."""
    reservation_id: str | None
    vpc_id: str | None
    subnet_id: str | None
    """This and `vpc_id` are those of a network that exists; None: a network is made."""
    is_public: bool
    buckets: tuple[str, ...]
    own_id: str | None
    """The cluster's id; None: it has none yet."""
    source: str
    """The file that says all this, as a person calls it."""
    tags: Mapping[str, str]
    """The tags of all that is made: an account may refuse resources without them."""
