"""The client that each kind of mount needs on each system, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # JSON before it is checked


@dataclass(frozen=True, kw_only=True)
class MountClient:
    """How the client of one kind of mount gets onto one system."""

    by: str
    """`package`: from the system's own package sources; `lustre-of-ubuntu`: from FSx's repository; `signed-package`:
    Mountpoint's own package."""
    architectures: tuple[str, ...]
    hosts: tuple[str, ...]
    """What a node has to reach for it, in words."""
    package: str = ""
    suite: str = ""
    """Of FSx's repository."""
    version: str = ""
    fingerprint: str = ""
    """Of the key that signed the package."""


@dataclass(frozen=True, kw_only=True)
class MountClients:
    """The clients in the data file; a combination that is not in it is not known to work."""

    dated: str
    clients: Mapping[tuple[str, str], MountClient]
    """(system, kind of mount) → its client."""
    reasons: Mapping[tuple[str, str], str]
    """Why a system has no client for a kind of mount."""


def mount_clients(document: Mapping[str, Any]) -> MountClients:
    """The clients in the data file's JSON."""
    return MountClients(
        dated=document["dated"],
        clients={
            (system, kind): MountClient(
                **{**row, "architectures": tuple(row["architectures"]), "hosts": tuple(row["hosts"])}
            )
            for system, kinds in document["systems"].items()
            for kind, row in kinds.items()
        },
        reasons={
            (system, kind): reason for system, kinds in document["reasons"].items() for kind, reason in kinds.items()
        },
    )
