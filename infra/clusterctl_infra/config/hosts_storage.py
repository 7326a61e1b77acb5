"""The `storage:` part of cluster.yaml with `target: hosts`: file systems that exist, by their servers' addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from clusterctl_infra.config.fields import Switch, Text, check_form, check_text
from clusterctl_infra.config.problems import shown
from clusterctl_infra.config.storage import STRICT, WRITABLE
from clusterctl_infra.config.storage_fields import check_mount
from clusterctl_infra.config.storage_rules import MOUNTS_LIMIT, overlaps

Kind = Literal["nfs", "lustre"]
PACKAGES = {
    "nfs": "nfs-common on Ubuntu and Debian, nfs-utils on Red Hat's systems",
    "lustre": "lustre-client on Red Hat's systems, lustre-client-utils and modules for the kernel on Ubuntu",
}
"""The packages with /sbin/mount.nfs and /sbin/mount.lustre (the Debian and Red Hat package lists; wiki.lustre.org,
Client packages; read 2026-11)."""
LUSTRE_OPTIONS = "flock"
"""Without it, a program that locks a file gets an error (mount.lustre(8))."""
OPTIONS_OF_OUR_OWN = {
    "ro": "write writable: false instead",
    "rw": "leave it out: nodes may write unless it says writable: false",
    "bg": "leave it out: a node waits until its storage is mounted",
}
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)"
_PATH = r"/[A-Za-z0-9_.+@:/-]*"
_NID = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?@[a-z0-9]+"


def check_nfs_source(value: object) -> str:
    """`10.1.0.9:/export/shared`. Raises ValueError."""
    return check_form(value, f"{_HOST}:{_PATH}", "not a server and a path, such as 10.1.0.9:/export/shared")


def check_lustre_source(value: object) -> str:
    """`10.1.0.20@o2ib:/scratch`; commas and colons separate several management servers. Raises ValueError."""
    message = (
        "not a management server with its network and a file system, such as 10.1.0.20@tcp:/scratch or "
        "10.1.0.20@o2ib:/scratch"
    )
    return check_form(value, f"{_NID}([,:]{_NID})*:{_PATH}", message)


def check_options(value: object) -> str:
    """Words for `mount -o`, with commas between. Raises ValueError."""
    text = check_text(value).strip()
    if text and not re.fullmatch(r"[A-Za-z0-9_.=:/@+-]+(,[A-Za-z0-9_.=:/@+-]+)*", text, re.ASCII):
        raise ValueError("not options of mount with commas between, such as nfsvers=4.2,nconnect=8")
    for word in text.split(","):
        if word in OPTIONS_OF_OUR_OWN:
            raise ValueError(f"{word}: {OPTIONS_OF_OUR_OWN[word]}")
    return text


Options = Annotated[Text, BeforeValidator(check_options)]


class HostNfsConfig(BaseModel):
    """An NFS server's export."""

    model_config = STRICT
    source: Annotated[Text, BeforeValidator(check_nfs_source)] = Field(
        description="Server and path.", examples=["10.1.0.9:/export/shared"]
    )
    options: Options = Field(
        default="",
        description="For `mount -o`; left out: what the host's own client chooses.",
        examples=["nfsvers=4.2,nconnect=8"],
    )
    writable: Switch = Field(default=True, description=WRITABLE)


class HostLustreConfig(BaseModel):
    """A Lustre file system."""

    model_config = STRICT
    source: Annotated[Text, BeforeValidator(check_lustre_source)] = Field(
        description="The management server with its network, and the file system.", examples=["10.1.0.20@o2ib:/scratch"]
    )
    options: Options = Field(default=LUSTRE_OPTIONS, description="For `mount -o`.", examples=["flock,noatime"])
    writable: Switch = Field(default=True, description=WRITABLE)


class HostStorageConfig(BaseModel):
    """One mount and what is behind it."""

    model_config = STRICT
    mount: Annotated[str, BeforeValidator(check_mount)] = Field(description="Where nodes see it.", examples=["/shared"])
    nfs: HostNfsConfig | None = Field(default=None, description="NFS.")
    lustre: HostLustreConfig | None = Field(default=None, description="Lustre.")

    @model_validator(mode="after")
    def _one_kind(self) -> HostStorageConfig:
        if (self.nfs is None) == (self.lustre is None):
            raise ValueError("name exactly one of nfs, lustre")
        return self

    @property
    def kind(self) -> Kind:
        return "lustre" if self.nfs is None else "nfs"

    @property
    def behind(self) -> HostNfsConfig | HostLustreConfig:
        """What is mounted."""
        found = self.nfs or self.lustre
        assert found is not None  # `_one_kind`
        return found


def storage_problems(storage: tuple[HostStorageConfig, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(path, sentence) of each problem that mounts have with each other."""
    if len(storage) > MOUNTS_LIMIT:
        yield ("storage",), f"{len(storage)} mounts; the most is {MOUNTS_LIMIT}"
    for index, message in overlaps([row.mount for row in storage]):
        yield ("storage", index, "mount"), message
    sources = [row.behind.source for row in storage]
    for index, source in enumerate(sources):
        if source in sources[:index]:
            first = storage[sources.index(source)].mount
            yield ("storage", index, storage[index].kind, "source"), f"{shown(source)}: mounted at {first} already"
