"""Rules between the mounts of a cluster, and between them and its machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.document import Path
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import shown
from clusterctl_infra.config.storage import StorageConfig

MOUNTS_LIMIT = 16
"""The rights to this many buckets still fit into one role: its inline policies have 10,240 characters (IAM quotas)."""


BUCKET_KEYS_LIMIT = 3
"""The most KMS keys of buckets, each of which is named twice in those rights."""


def bucket_keys_are_few(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    keys = {row.s3.kms_key for row in config.storage if row.s3 is not None and row.s3.kms_key is not None}
    if len(keys) > BUCKET_KEYS_LIMIT:
        yield ("storage",), f"{len(keys)} keys of buckets; the rights of nodes have room for {BUCKET_KEYS_LIMIT}"


def mounts_are_few(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    if len(config.storage) > MOUNTS_LIMIT:
        yield ("storage",), f"{len(config.storage)} mounts; the most is {MOUNTS_LIMIT}"


def mounts_differ(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """No mount twice, and none inside another: the order of mounting would decide which files are visible."""
    for index, message in overlaps([storage.mount for storage in config.storage]):
        yield ("storage", index, "mount"), message


def overlaps(mounts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(index, sentence) of each mount that is there twice, or lies in another."""
    for index, mount in enumerate(mounts):
        if mount in mounts[:index]:
            yield index, f"{shown(mount)}: mounted twice"
        outer = next((other for other in mounts if mount.startswith(f"{other}/")), None)
        if outer is not None:
            yield index, f"{shown(mount)}: inside {outer}, which is a mount too; put them side by side"


def file_systems_differ(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    ids = [_adopted(storage) for storage in config.storage]
    for index, id in enumerate(ids):
        if id is not None and id in ids[:index]:
            kind = "fsx-lustre" if config.storage[index].fsx_lustre is not None else "efs"
            first = config.storage[ids.index(id)].mount
            yield ("storage", index, kind, "file_system_id"), f"{shown(id)}: mounted at {first} already"


def workflow_storage_is_mounted(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """Workflow storage is in a bucket that is mounted writable: nodes have no rights to any other."""
    if config.workflow_storage is None:
        return
    bucket, _, path = config.workflow_storage.removeprefix("s3://").partition("/")
    found = [row.s3 for row in config.storage if row.s3 is not None and row.s3.bucket == bucket]
    found = [each for each in found if f"{path}/".startswith(each.prefix)]
    if not any(each.writable for each in found):
        why = "mounted read-only: add writable: true there" if found else "mounted by nothing in storage"
        yield ("workflow_storage",), f"{shown(config.workflow_storage)}: {why}"


def local_disks_are_there(config: ClusterConfig, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    asking = [index for index, storage in enumerate(config.storage) if storage.nvme is not None]
    for index in asking[1:]:
        yield ("storage", index, "nvme"), "a node's disks are one volume: mount them once"
    if not asking:
        return
    row = next((row for row in config.instance_rows(catalog) if not row.nvme_gb), None)
    if row is not None:
        yield ("storage", asking[0], "nvme"), f"{row.name} has no disks of its own; leave it out"


def _adopted(storage: StorageConfig) -> str | None:
    kind = storage.fsx_lustre or storage.efs
    return None if kind is None else kind.file_system_id
