"""From `storage:` to what is made, what it costs, and what a node mounts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from clusterctl_bootstrap.node_plan import MountPlan

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.storage import (
    EVENTS,
    LEAST_THROUGHPUT,
    DataRepositoryConfig,
    EfsConfig,
    FsxLustreConfig,
    S3Config,
    StorageConfig,
)
from clusterctl_infra.plan.storage_model import (
    BucketPlan,
    DisksPlan,
    EfsPlan,
    LustrePlan,
    RepositoryPlan,
    StoragePlan,
    is_retained,
)


def storage_plans(config: ClusterConfig, catalog: Catalog) -> tuple[StoragePlan, ...]:
    """What is behind each mount, in the file's order."""
    return tuple(_storage_plan(row, catalog, region=config.region, kms_key=config.kms_key) for row in config.storage)


def kept_storage(storage: Sequence[StoragePlan], existing: frozenset[str] | None) -> tuple[StoragePlan, ...]:
    """The file systems that stay without nodes: those mounted at `existing` paths; None: all that `down` keeps."""
    if existing is None:
        return tuple(row for row in storage if is_retained(row))
    return tuple(row for row in storage if row.mount in existing and isinstance(row, LustrePlan | EfsPlan))


def storage_usd_per_hour(storage: Sequence[StoragePlan]) -> float | None:
    """What storage costs whether it is used or not; None when a price is unknown. What bills by use is left out."""
    prices = [row.usd_per_hour for row in storage if isinstance(row, LustrePlan)]
    known = [price for price in prices if price is not None]
    return sum(known, start=0.0) if len(known) == len(prices) else None


def mount_facts(config: ClusterConfig) -> list[Mapping[str, object]]:
    """The part of `storage:` that a node is born with: everything but what can change under a running node."""
    later = {"size", "throughput", "data_repository", "on_delete", "encrypted", "kms_key"}
    rows = (storage.model_dump(mode="json", exclude_none=True) for storage in config.storage)
    return [
        {
            key: {name: each for name, each in value.items() if name not in later} if isinstance(value, dict) else value
            for key, value in row.items()
        }
        for row in rows
    ]


def mount_plan(storage: StoragePlan, *, source: str = "", region: str = "") -> MountPlan:
    """A mount as a node's facts describe it; file systems need `source`, buckets `region`."""
    writable = storage.writable
    if isinstance(storage, LustrePlan):
        return MountPlan(path=storage.mount, kind="fsx-lustre", source=source, writable=writable)
    if isinstance(storage, EfsPlan):
        return MountPlan(path=storage.mount, kind="efs", source=source, writable=writable)
    if isinstance(storage, BucketPlan):
        where = f"{storage.bucket}/{storage.prefix}"
        return MountPlan(path=storage.mount, kind="s3", source=where, options=f"region={region}", writable=writable)
    if isinstance(storage, DisksPlan):
        return MountPlan(path=storage.mount, kind="nvme", options=storage.level, writable=writable)
    raise TypeError(f"{type(storage).__name__} is no kind of storage")


def stand_in_mounts(storage: Sequence[StoragePlan], *, region: str) -> tuple[MountPlan, ...]:
    """Mounts before anything exists, with made-up names that are as long as AWS's and compress as badly."""
    return tuple(mount_plan(row, source=_stand_in_source(row, region), region=region) for row in storage)


def lustre_source(dns_name: str, mount_name: str) -> str:
    """What `mount -t lustre` takes."""
    return f"{dns_name}@tcp:/{mount_name}"


def efs_source(dns_name: str) -> str:
    """What `mount -t nfs4` takes."""
    return f"{dns_name}:/"


def _storage_plan(row: StorageConfig, catalog: Catalog, *, region: str, kms_key: str | None) -> StoragePlan:
    if row.fsx_lustre is not None:
        return _lustre_plan(row.mount, row.fsx_lustre, catalog, region=region, kms_key=kms_key)
    if row.efs is not None:
        return _efs_plan(row.mount, row.efs, kms_key=kms_key)
    if row.s3 is not None:
        return _bucket_plan(row.mount, row.s3)
    assert row.nvme is not None  # the model has exactly one kind
    return DisksPlan(mount=row.mount, writable=True, level=row.nvme.level)


def _lustre_plan(
    mount: str, given: FsxLustreConfig, catalog: Catalog, *, region: str, kms_key: str | None
) -> LustrePlan:
    is_own = given.file_system_id is None
    size_gib = given.size or 0
    throughput = None if given.type == "scratch" else given.throughput or LEAST_THROUGHPUT
    price = catalog.storage.lustre_usd_per_hour(region, size_gib=size_gib, throughput=throughput) if is_own else 0.0
    return LustrePlan(
        mount=mount,
        writable=given.writable,
        adopted_id=given.file_system_id,
        deployment_type="SCRATCH_2" if given.type == "scratch" else "PERSISTENT_2",
        size_gib=size_gib,
        throughput=throughput,
        is_retained=is_own and given.on_delete == "retain",
        kms_key=kms_key if is_own and given.type == "persistent" else None,
        repository=None if given.data_repository is None else _repository_plan(given.data_repository),
        usd_per_hour=price,
    )


def _repository_plan(given: DataRepositoryConfig) -> RepositoryPlan:
    """The link to a bucket. Its events have one order whatever the file's, so that another order is no change."""
    return RepositoryPlan(
        bucket=given.bucket,
        prefix=given.prefix,
        path=given.path,
        imports=tuple(event.upper() for event in EVENTS if event in given.imports),
        exports=tuple(event.upper() for event in EVENTS if event in given.exports),
    )


def _efs_plan(mount: str, given: EfsConfig, *, kms_key: str | None) -> EfsPlan:
    return EfsPlan(
        mount=mount,
        writable=given.writable,
        adopted_id=given.file_system_id,
        encrypted=given.encrypted,
        kms_key=kms_key if given.encrypted and given.file_system_id is None else None,
        is_retained=given.file_system_id is None and given.on_delete == "retain",
    )


def _bucket_plan(mount: str, given: S3Config) -> BucketPlan:
    return BucketPlan(
        mount=mount, writable=given.writable, bucket=given.bucket, prefix=given.prefix, kms_key=given.kms_key
    )


def _stand_in_source(storage: StoragePlan, region: str) -> str:
    digest = hashlib.sha256(storage.mount.encode()).hexdigest()
    if isinstance(storage, LustrePlan):
        id = storage.adopted_id or f"fs-{digest[:17]}"
        return lustre_source(f"{id}.fsx.{region}.amazonaws.com", digest[-8:])
    if isinstance(storage, EfsPlan):
        return efs_source(f"{storage.adopted_id or f'fs-{digest[:17]}'}.efs.{region}.amazonaws.com")
    return ""
