"""Kinds of shared storage: file systems, which hold data, and the mount targets that lead to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, Kind
from clusterctl.cloud.instances import tags_of


def _targets(clients: Clients, cluster_id: str) -> Iterator[Found]:
    """They carry no tags: those of the cluster's own file systems."""
    for file_system in _elastic(clients, cluster_id):
        pages = clients.efs.get_paginator("describe_mount_targets").paginate(FileSystemId=file_system.id)
        for page in pages:
            for row in page["MountTargets"]:
                yield Found(kind="EFS mount target", id=row["MountTargetId"], parent=file_system.id)


def _delete_target(clients: Clients, found: Found) -> None:
    clients.efs.delete_mount_target(MountTargetId=found.id)


def _elastic(clients: Clients, cluster_id: str) -> Iterator[Found]:
    for page in clients.efs.get_paginator("describe_file_systems").paginate():
        yield from _ours(page["FileSystems"], cluster_id, kind="EFS file system")


def _delete_elastic(clients: Clients, found: Found) -> None:
    clients.efs.delete_file_system(FileSystemId=found.id)


def _lustre(clients: Clients, cluster_id: str) -> Iterator[Found]:
    for page in clients.fsx.get_paginator("describe_file_systems").paginate():
        yield from _ours(page["FileSystems"], cluster_id, kind="FSx file system")


def _delete_lustre(clients: Clients, found: Found) -> None:
    clients.fsx.delete_file_system(FileSystemId=found.id)


def _ours(rows: Iterable[Mapping[str, object]], cluster_id: str, *, kind: str) -> Iterator[Found]:
    """Neither service filters by tag."""
    for row in rows:
        tags, created_at = row.get("Tags"), row.get("CreationTime")
        if isinstance(tags, list) and tags_of(tags).get(ID_TAG) == cluster_id:
            yield Found(
                kind=kind,
                id=str(row["FileSystemId"]),
                created_at=created_at if isinstance(created_at, datetime) else None,
            )


STORAGE_KINDS = (
    Kind(
        name="EFS mount target",
        types=("aws:efs/mountTarget:MountTarget",),
        find=_targets,
        delete=_delete_target,
        bills=None,
    ),
    Kind(
        name="EFS file system",
        types=("aws:efs/fileSystem:FileSystem",),
        find=_elastic,
        delete=_delete_elastic,
        bills="what it holds",
        is_data=True,
    ),
    Kind(
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
