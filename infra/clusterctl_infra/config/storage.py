"""The `storage:` part of cluster.yaml: what is mounted on every node, and what is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from clusterctl_infra.config.fields import KMS_EXAMPLE, KmsKeyArn, SizeGib, Switch, Text
from clusterctl_infra.config.storage_fields import (
    THROUGHPUTS,
    check_bucket,
    check_events,
    check_file_system_id,
    check_folder,
    check_lustre_size,
    check_mount,
    check_prefix,
    check_throughput,
)

STRICT = ConfigDict(extra="forbid", frozen=True)
Throughput = Annotated[int, BeforeValidator(check_throughput), WithJsonSchema({"enum": list(THROUGHPUTS)})]
FileSystemId = Annotated[str, BeforeValidator(check_file_system_id)]
OnDelete = Literal["retain", "delete"]
Event = Literal["new", "changed", "deleted"]
Events = Annotated[tuple[Event, ...], BeforeValidator(check_events)]
EVENTS: tuple[Event, ...] = get_args(Event)
LEAST_THROUGHPUT = THROUGHPUTS[0]

ADOPTED = "Use this one, which exists; clusterctl never deletes it. Without it, the cluster gets its own."
KEPT = (
    "`retain`: it holds data, so `clusterctl down` ends only the nodes, and only `down --all` ends this, too; "
    "`delete`: it ends with the nodes."
)
WRITABLE = "Whether nodes may write."


class DataRepositoryConfig(BaseModel):
    """An existing bucket that FSx itself links to a folder of the file system."""

    model_config = STRICT
    bucket: Annotated[Text, BeforeValidator(check_bucket)] = Field(
        description="The bucket's name.", examples=["ml-datasets"]
    )
    prefix: Annotated[Text, BeforeValidator(check_prefix)] = Field(
        default="", description="Only keys below it are linked. Ends in a slash.", examples=["imagenet/"]
    )
    path: Annotated[str, BeforeValidator(check_folder)] = Field(
        default="/", description="The folder of the file system; `/`: all of it.", examples=["/imagenet"]
    )
    imports: Events = Field(
        default=EVENTS,
        description="Which later changes in the bucket FSx brings into the file system; first it brings everything "
        "that is there. `[]`: it brings nothing. With any, the bucket has to be in the cluster's region.",
    )
    exports: Events = Field(
        default=(),
        description="Which changes in the file system FSx takes to the bucket, some time after a file was closed. "
        "`deleted` deletes objects.",
    )

    @model_validator(mode="after")
    def _does_something(self) -> DataRepositoryConfig:
        if not self.imports and not self.exports:
            raise ValueError("imports and exports are both empty, so the link would do nothing: leave it out")
        return self


class FsxLustreConfig(BaseModel):
    """A parallel file system: the cluster's own, or one that exists."""

    model_config = STRICT
    size: Annotated[SizeGib, BeforeValidator(check_lustre_size)] | None = Field(
        default=None, description="1200GiB or a multiple of 2400GiB; it can grow later.", examples=["4800GiB"]
    )
    type: Literal["persistent", "scratch"] = Field(
        default="persistent",
        description="`persistent`: replicated (PERSISTENT_2); `scratch`: if a server fails, its files are lost "
        "(SCRATCH_2).",
    )
    throughput: Throughput | None = Field(
        default=None,
        description=f"MB/s per TiB, if persistent; left out: {LEAST_THROUGHPUT}, the cheapest. Scratch has 200.",
    )
    data_repository: DataRepositoryConfig | None = Field(
        default=None,
        description="A bucket that FSx links to the file system; only for one that the cluster makes. Changing or "
        "removing it later keeps the files.",
    )
    on_delete: OnDelete = Field(default="retain", description=KEPT)
    writable: Switch = Field(default=True, description=WRITABLE)
    file_system_id: FileSystemId | None = Field(default=None, description=ADOPTED, examples=["fs-0a1b2c3d4e5f67890"])

    @model_validator(mode="after")
    def _own_or_adopted(self) -> FsxLustreConfig:
        if problems := "; ".join(self._problems()):
            raise ValueError(problems)
        return self

    def _problems(self) -> Iterator[str]:
        if self.file_system_id is None and self.size is None:
            yield "size is missing: write size: 1200GiB, or file_system_id of one that exists"
        if self.file_system_id is not None:
            yield from _asked_beside_adopted(self, ("size", "type", "throughput", "on_delete"))
            if self.data_repository is not None:
                yield "data_repository: no existing file system is changed; link the bucket yourself and leave this out"
        if self.type == "scratch" and self.throughput is not None:
            yield "throughput: scratch file systems all have 200 MB/s per TiB; leave it out"
        if self.data_repository is not None and self.data_repository.exports and not self.writable:
            yield "data_repository.exports: with writable: false nodes change nothing that could be exported"


class EfsConfig(BaseModel):
    """An elastic NFS file system: the cluster's own, or one that exists. Its throughput is elastic."""

    model_config = STRICT
    encrypted: Switch = Field(default=True, description="At rest; costs nothing.")
    on_delete: OnDelete = Field(default="retain", description=KEPT)
    writable: Switch = Field(default=True, description=WRITABLE)
    file_system_id: FileSystemId | None = Field(default=None, description=ADOPTED, examples=["fs-0a1b2c3d4e5f67890"])

    @model_validator(mode="after")
    def _own_or_adopted(self) -> EfsConfig:
        if self.file_system_id is not None:
            for problem in _asked_beside_adopted(self, ("encrypted", "on_delete")):
                raise ValueError(problem)
        return self


class S3Config(BaseModel):
    """An existing bucket, mounted."""

    model_config = STRICT
    bucket: Annotated[Text, BeforeValidator(check_bucket)] = Field(
        description="The bucket's name.", examples=["ml-datasets"]
    )
    prefix: Annotated[Text, BeforeValidator(check_prefix)] = Field(
        default="",
        description="Only keys below it are seen, and nodes have rights to no others. Ends in a slash.",
        examples=["imagenet/"],
    )
    kms_key: KmsKeyArn | None = Field(
        default=None,
        description="The KMS key of a bucket that is encrypted with one (SSE-KMS): nodes get rights to it, through S3 "
        "only.",
        examples=[KMS_EXAMPLE],
    )
    writable: Switch = Field(
        default=False,
        description="Whether nodes may write; read-only by default, because data sets outlive clusters.",
    )


class NvmeConfig(BaseModel):
    """The node's own disks as one volume; gone with the node."""

    model_config = STRICT
    level: Literal["stripe", "single"] = Field(
        default="stripe", description="`stripe`: all disks as one; `single`: the first alone."
    )


class StorageConfig(BaseModel):
    """One mount and what is behind it."""

    model_config = STRICT
    mount: Annotated[str, BeforeValidator(check_mount)] = Field(description="Where nodes see it.", examples=["/shared"])
    fsx_lustre: FsxLustreConfig | None = Field(default=None, alias="fsx-lustre", description="FSx for Lustre.")
    efs: EfsConfig | None = Field(default=None, description="EFS.")
    s3: S3Config | None = Field(default=None, description="An S3 bucket through mountpoint-s3.")
    nvme: NvmeConfig | None = Field(default=None, description="Local disks.")

    @model_validator(mode="after")
    def _one_kind(self) -> StorageConfig:
        given = [kind for kind in (self.fsx_lustre, self.efs, self.s3, self.nvme) if kind is not None]
        if len(given) != 1:
            raise ValueError("name exactly one of fsx-lustre, efs, s3, nvme")
        return self


def _asked_beside_adopted(given: BaseModel, keys: tuple[str, ...]) -> Iterator[str]:
    """The sentence about keys that were written although an existing file system cannot have them."""
    asked = [key for key in keys if key in given.model_fields_set]
    if asked:
        yield f"file_system_id names one that exists: leave out {', '.join(asked)}"
