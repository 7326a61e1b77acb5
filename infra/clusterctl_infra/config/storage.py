"""The `storage:` part of cluster.yaml. Modelled, and refused until it is built."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from clusterctl_infra.config.fields import SizeGib, Switch, Text, check_positive, check_size, check_text

STRICT = ConfigDict(extra="forbid", frozen=True)


def check_lustre_size(value: object) -> int:
    """A size that FSx for Lustre makes (1200 GiB or a multiple of 2400). Raises ValueError."""
    from_text = check_size(value)
    if from_text == 1200 or (from_text > 0 and from_text % 2400 == 0):
        return from_text
    below, above = from_text // 2400 * 2400 or 1200, (from_text // 2400 + 1) * 2400
    raise ValueError(f"not a size that AWS makes: {below}GiB or {above}GiB")


def check_mount(value: object) -> str:
    """An absolute path that is not a system's own. Raises ValueError."""
    text = check_text(value)
    if not text.startswith("/") or "//" in text or "/.." in text or text != text.rstrip("/"):
        raise ValueError("not an absolute path such as /shared")
    first = text.split("/")[1]
    if first in {"bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "usr", "var"}:
        raise ValueError(f"/{first} belongs to the system; mount elsewhere, such as /shared")
    return text


def check_throughput(value: object) -> int:
    """One of those that persistent storage has. Raises ValueError."""
    found = check_positive(value)
    if found not in THROUGHPUTS:
        raise ValueError(f"MB/s per TiB; AWS has {', '.join(map(str, THROUGHPUTS))}")
    return found


THROUGHPUTS = (125, 250, 500, 1000)
Throughput = Annotated[int, BeforeValidator(check_throughput), WithJsonSchema({"enum": list(THROUGHPUTS)})]


class FsxLustreConfig(BaseModel):
    """A parallel file system of the cluster's own."""

    model_config = STRICT
    size: Annotated[SizeGib, BeforeValidator(check_lustre_size)] = Field(
        description="1200GiB or a multiple of 2400GiB."
    )
    throughput: Throughput = Field(default=125, description="MB/s per TiB; the least is the cheapest.")


class EfsConfig(BaseModel):
    """An elastic NFS file system of the cluster's own."""

    model_config = STRICT
    encrypted: Switch = Field(default=True, description="At rest; costs nothing.")


class S3Config(BaseModel):
    """An existing bucket, mounted."""

    model_config = STRICT
    bucket: Text = Field(description="The bucket's name.", examples=["ml-datasets"])
    prefix: Text = Field(default="", description="Only keys below it are seen.", examples=["imagenet/"])
    writable: Switch = Field(default=False, description="Read-only unless said otherwise: data sets outlive clusters.")


class NvmeConfig(BaseModel):
    """The node's own disks as one volume; gone with the node."""

    model_config = STRICT
    level: Literal["stripe", "single"] = Field(default="stripe", description="`stripe`: all disks as one.")


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
