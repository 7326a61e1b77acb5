"""A machine of a person's own, as a node."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode


@dataclass(frozen=True, kw_only=True)
class PersonsNode(InventoryNode):
    """A machine from a person's file, with what is its own; None: as all have it."""

    user: str | None = None
    port: int | None = None
    proxy_argv: tuple[str, ...] | None = None
    identity_files: tuple[str, ...] = ()
    identity_agent: str | None = None
    has_identities_only: bool = False
