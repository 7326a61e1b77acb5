"""The machines that a command is for: a cluster's, or those of a person's file."""

from __future__ import annotations

import importlib
from pathlib import Path

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.known_clusters import find_cluster
from clusterctl.system.caller import Caller, this_process


def chosen_machines(cluster: str | None, file: Path | None) -> Inventory:
    """The machines that `--cluster` or `--inventory` means here.

    Raises UsageError if both are given, and whatever reading the cluster or the file raises.
    """
    return machines_of(this_process(), cluster, file)


def machines_of(caller: Caller, cluster: str | None, file: Path | None) -> Inventory:
    """The machines that `--cluster` or `--inventory` means for `caller`. Raises as `chosen_machines` does."""
    if file is None:
        return find_cluster(caller.home, name=cluster, environ=caller.environ)
    if cluster is not None:
        raise UsageError(f"--cluster {cluster} and --inventory {file}: give only one of them")
    any_inventory = importlib.import_module("clusterctl.ssh.any_inventory")
    inventory: Inventory = any_inventory.read_any_inventory(caller.folder / file, ssh_config=caller.ssh_dir / "config")
    return inventory
