"""The programs that mounts need: who installs them on which image, and where that is not known to work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_bootstrap.mount_clients import from_own_sources, lustre_of_ubuntu, mount_clients, signed_mountpoint
from clusterctl_bootstrap.node_plan import ScriptPlan

from clusterctl_infra.catalog.mount_clients import MountClient
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.storage_model import BucketPlan, EfsPlan, LustrePlan, StoragePlan

HELPERS = {"fsx-lustre": "lustre", "efs": "nfs4", "s3": "mount-s3"}
"""Kind of mount → the last part of the name of the program that mounts it, /sbin/mount.…"""
TITLES = {"fsx-lustre": "FSx for Lustre", "efs": "EFS", "s3": "buckets"}


def clients_script(
    image: str, catalog: Catalog, storage: Sequence[StoragePlan], *, architecture: str
) -> ScriptPlan | None:
    """What a node of this image runs before it mounts; None: nothing is to be installed, or no client is known."""
    kinds = network_kinds(storage)
    found = [(kind, client) for kind in kinds if (client := _client(image, catalog, kind, architecture)) is not None]
    return mount_clients(_part(kind, client, architecture) for kind, client in found) if found else None


def client_sources(config: ClusterConfig, catalog: Catalog, storage: Sequence[StoragePlan]) -> list[str]:
    """What nodes have to reach to install these clients, in words, each once."""
    machine = config.instance_row(catalog)
    architecture = "" if machine is None else machine.architecture
    clients = (_client(config.image, catalog, kind, architecture) for kind in network_kinds(storage))
    return list(dict.fromkeys(host for client in clients if client is not None for host in client.hosts))


def network_kinds(storage: Sequence[StoragePlan]) -> list[str]:
    """The kinds of mounts that need a client, each once."""
    return list(dict.fromkeys(kind for row in storage if (kind := _kind(row)) is not None))


def mounts_have_clients(case: Case) -> Iterator[Problem]:
    """Every mount needs a client: without one, a node would fail only when it already bills."""
    config, catalog, architecture = case.config, case.catalog, case.instance_type.architecture
    image = catalog.images.get(config.image)
    written = [entry.mount for entry in config.storage]
    for row in case.plan.storage:
        kind, index = _kind(row), written.index(row.mount)
        if kind is None or _client(config.image, catalog, kind, architecture) is not None:
            continue
        if image is None:
            yield warning(
                f"storage[{index}]",
                f"{row.mount}: what {config.image} has is not known: a node without /sbin/mount.{HELPERS[kind]} fails, "
                "unless packages: or a script before-mounts installs it",
            )
            continue
        fitting = [name for name in catalog.images if _fits(case, name, kind)]
        reason = catalog.mount_clients.reasons.get((image.system, kind))
        helps = f"; {', '.join(fitting)} can" if fitting else ""
        yield error(
            f"storage[{index}]",
            f"{row.mount}: {config.image} cannot mount {TITLES[kind]} on {architecture}: "
            f"{reason or 'no client for it is known'}{helps}",
        )


def _fits(case: Case, name: str, kind: str) -> bool:
    """Whether the image `name` could be used instead."""
    architecture = case.instance_type.architecture
    image = case.catalog.images[name]
    is_alike = image.unpatched_since is None and not image.lacks
    return is_alike and architecture in image.parameters and _client(name, case.catalog, kind, architecture) is not None


def _client(image: str, catalog: Catalog, kind: str, architecture: str) -> MountClient | None:
    row = catalog.images.get(image)
    client = None if row is None else catalog.mount_clients.clients.get((row.system, kind))
    return client if client is not None and architecture in client.architectures else None


def _part(kind: str, client: MountClient, architecture: str) -> str:
    """The part of the script that installs this client."""
    if client.by == "lustre-of-ubuntu":
        return lustre_of_ubuntu(client.suite)
    if client.by == "signed-package":
        return signed_mountpoint(client.version, architecture, client.fingerprint)
    return from_own_sources(HELPERS[kind], client.package)


def _kind(row: StoragePlan) -> str | None:
    if isinstance(row, LustrePlan):
        return "fsx-lustre"
    if isinstance(row, EfsPlan):
        return "efs"
    return "s3" if isinstance(row, BucketPlan) else None
