"""Every resource type that the region knows, by its Pulumi token."""

from __future__ import annotations

from clusterctl_rehearsal.refusal import StandInRefusal
from clusterctl_rehearsal.region.types.addresses import ADDRESS_TYPES
from clusterctl_rehearsal.region.types.capacity import CAPACITY_TYPES
from clusterctl_rehearsal.region.types.deadline import DEADLINE_TYPES
from clusterctl_rehearsal.region.types.file_systems import FILE_SYSTEM_TYPES
from clusterctl_rehearsal.region.types.identity import IDENTITY_TYPES
from clusterctl_rehearsal.region.types.launch import LAUNCH_TYPES
from clusterctl_rehearsal.region.types.network import NETWORK_TYPES
from clusterctl_rehearsal.region.types.row import ResourceType
from clusterctl_rehearsal.region.types.security import SECURITY_TYPES
from clusterctl_rehearsal.region.types.volume import VOLUME_TYPES

TYPES = {
    row.token: row
    for rows in (
        NETWORK_TYPES,
        SECURITY_TYPES,
        ADDRESS_TYPES,
        CAPACITY_TYPES,
        LAUNCH_TYPES,
        IDENTITY_TYPES,
        FILE_SYSTEM_TYPES,
        DEADLINE_TYPES,
        VOLUME_TYPES,
    )
    for row in rows
}


def resource_type(token: str) -> ResourceType:
    """The row of a type. Raises StandInRefusal for one that the engine cannot make here."""
    row = TYPES.get(token)
    if row is None or not row.create:
        module, _, name = token.removeprefix("aws:").partition("/")
        raise StandInRefusal(f"the stand-in does not know aws:{module}.{name.rpartition(':')[2] or name} yet")
    return row
