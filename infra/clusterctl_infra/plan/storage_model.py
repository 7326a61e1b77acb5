"""What is mounted on nodes, as plain data: one class per thing that can be behind a mount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class StoragePlan:
    """One mount."""

    mount: str
    writable: bool

    @property
    def label(self) -> str:
        """What its resources are called: `shared`, `mnt-data` for /mnt/data, `mnt-run--1` for /mnt/run-1."""
        return self.mount.removeprefix("/").replace("-", "--").replace("/", "-")


@dataclass(frozen=True, kw_only=True)
class RepositoryPlan:
    """The bucket that FSx links to a folder of a file system."""

    bucket: str
    prefix: str
    """Empty, or with a slash at its end."""
    path: str
    """The linked folder of the file system; `/`: all of it."""
    imports: tuple[str, ...]
    """Some of `NEW`, `CHANGED`, `DELETED`, in this order."""
    exports: tuple[str, ...]

    @property
    def address(self) -> str:
        """`s3://ml-datasets/imagenet/`; of a whole bucket `s3://ml-datasets`."""
        return f"s3://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")


@dataclass(frozen=True, kw_only=True)
class LustrePlan(StoragePlan):
    """FSx for Lustre: one of the cluster's own, or an adopted one, of which nothing but the id is known."""

    adopted_id: str | None
    deployment_type: Literal["PERSISTENT_2", "SCRATCH_2"]
    size_gib: int
    """0 for an adopted one."""
    throughput: int | None
    """MB/s per TiB; None for scratch, which has 200."""
    is_retained: bool
    """Whether `down` keeps it; False for an adopted one."""
    kms_key: str | None
    """The ARN of the key that encrypts it; None: AWS's own, the only one for scratch (FSx API, KmsKeyId; 2026-11)."""
    repository: RepositoryPlan | None
    """The bucket that it is linked to; None: no bucket, and always for an adopted one."""
    usd_per_hour: float | None
    """Full or empty; None: unknown. An adopted one costs this cluster nothing."""


@dataclass(frozen=True, kw_only=True)
class EfsPlan(StoragePlan):
    """EFS: one of the cluster's own, or an adopted one. It bills by use."""

    adopted_id: str | None
    encrypted: bool
    kms_key: str | None
    """None: AWS's own, or none."""
    is_retained: bool


@dataclass(frozen=True, kw_only=True)
class BucketPlan(StoragePlan):
    """A bucket that exists, below a prefix."""

    bucket: str
    prefix: str
    """Empty, or with a slash at its end."""
    kms_key: str | None
    """The ARN of the key that encrypts it; None: nodes need no rights to one."""


@dataclass(frozen=True, kw_only=True)
class DisksPlan(StoragePlan):
    """The node's own disks."""

    level: Literal["stripe", "single"]


def repositories(storage: Sequence[StoragePlan]) -> list[RepositoryPlan]:
    """The links of the file systems to buckets."""
    return [row.repository for row in storage if isinstance(row, LustrePlan) and row.repository is not None]


def buckets_of(storage: Sequence[StoragePlan]) -> tuple[str, ...]:
    """The buckets that are mounted or linked, each once."""
    mounted = (row.bucket for row in storage if isinstance(row, BucketPlan))
    return tuple(dict.fromkeys([*mounted, *(link.bucket for link in repositories(storage))]))


def is_retained(storage: StoragePlan) -> bool:
    """Whether `down` keeps it: it is the cluster's own, and holds data."""
    return isinstance(storage, LustrePlan | EfsPlan) and storage.is_retained
