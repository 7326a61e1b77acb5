"""Kinds of shared storage: file systems, which hold data, and what leads to them: mount targets, links to buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any  # answers of services for which no types are installed

from clusterctl.cloud.answers import pages_by_token
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.resource import CloudResource, Meter, ResourceType, is_of


def _targets(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    """The mount targets of the cluster's own file systems, with their file systems' tags: they have none themselves."""
    for file_system in _elastic(clients, cluster_id):
        pages = clients.efs.get_paginator("describe_mount_targets").paginate(FileSystemId=file_system.id)
        for page in pages:
            for row in page["MountTargets"]:
                yield CloudResource(
                    kind="EFS mount target", id=row["MountTargetId"], parent=file_system.id, tags=file_system.tags
                )


def _delete_target(clients: Clients, found: CloudResource) -> None:
    clients.efs.delete_mount_target(MountTargetId=found.id)


def _elastic(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.efs.get_paginator("describe_file_systems").paginate():
        for row in page["FileSystems"]:
            held_gib = row.get("SizeInBytes", {}).get("Value", 0) / 2**30
            if (tags := _ours(row, cluster_id)) is not None:
                yield _file_system("EFS", row, tags, Meter(unit="EFS GiB", amount=held_gib))


def _delete_elastic(clients: Clients, found: CloudResource) -> None:
    clients.efs.delete_file_system(FileSystemId=found.id)


def _lustre(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.fsx.get_paginator("describe_file_systems").paginate():
        for row in page["FileSystems"]:
            tier = row.get("LustreConfiguration", {}).get("PerUnitStorageThroughput")
            meter = Meter(unit="Lustre GiB", amount=row.get("StorageCapacity", 0), name=str(tier or ""))
            if (tags := _ours(row, cluster_id)) is not None:
                yield _file_system("FSx", row, tags, meter)


def _delete_lustre(clients: Clients, found: CloudResource) -> None:
    """Deletes the file system without a last backup, which would go on billing. For Lustre, FSx makes neither a last
    backup nor automatic ones unless somebody asks for them.

    FSx API, DeleteFileSystem and CreateFileSystem; 2026-11-22.
    """
    clients.fsx.delete_file_system(FileSystemId=found.id)


def _links(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    pages = pages_by_token(
        lambda **token: clients.fsx.describe_data_repository_associations(**token),  # noqa: PLW0108 tests read calls
        "looking for links of file systems to buckets",
    )
    for page in pages:
        for row in page["Associations"]:
            if (tags := _ours(row, cluster_id)) is not None:
                yield CloudResource(
                    kind="FSx data repository association",
                    id=row["AssociationId"],
                    parent=row["FileSystemId"],
                    created_at=row.get("CreationTime"),
                    tags=tags,
                )


def _delete_link(clients: Clients, found: CloudResource) -> None:
    """Deletes the link; the files stay on both sides, as after a link is taken out of cluster.yaml."""
    clients.fsx.delete_data_repository_association(AssociationId=found.id, DeleteDataInFileSystem=False)


def _ours(row: Mapping[str, Any], cluster_id: str | None) -> dict[str, str] | None:
    """The row's tags if it belongs to the cluster (None: to any), else None: neither service filters by tag."""
    tags = tags_of(row.get("Tags"))
    return tags if is_of(tags, cluster_id) else None


def _file_system(service: str, row: Mapping[str, Any], tags: Mapping[str, str], meter: Meter) -> CloudResource:
    return CloudResource(
        kind=f"{service} file system",
        id=row["FileSystemId"],
        created_at=row.get("CreationTime"),
        tags=tags,
        meter=meter,
    )


STORAGE_KINDS = (
    ResourceType(
        name="EFS mount target",
        types=("aws:efs/mountTarget:MountTarget",),
        find=_targets,
        delete=_delete_target,
        bills=None,
        leads_to_data=True,
    ),
    ResourceType(
        name="EFS file system",
        types=("aws:efs/fileSystem:FileSystem",),
        find=_elastic,
        delete=_delete_elastic,
        bills="what it holds",
        is_data=True,
    ),
    ResourceType(
        name="FSx data repository association",
        types=("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",),
        find=_links,
        delete=_delete_link,
        bills=None,
        leads_to_data=True,
    ),
    ResourceType(
        name="FSx file system",
        types=("aws:fsx/lustreFileSystem:LustreFileSystem",),
        find=_lustre,
        delete=_delete_lustre,
        bills="its size, full or empty",
        is_data=True,
    ),
)
"""In the order in which they are ended."""
DATA_KINDS = tuple(kind for kind in STORAGE_KINDS if kind.is_data)
