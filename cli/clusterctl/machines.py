"""The machines that a command is for: a cluster's, or those of a person's file."""

from __future__ import annotations

import importlib
from pathlib import Path

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.options import chosen_cluster


def chosen_machines(cluster: str | None, file: Path | None) -> Inventory:
    """What `--cluster` or `--inventory` means. Raises UsageError for both, and as reading them does."""
    if file is None:
        return chosen_cluster(cluster)
    if cluster is not None:
        raise UsageError("--cluster and --inventory name two sets of machines")
    any_inventory = importlib.import_module("clusterctl.ssh.any_inventory")  # loaded on use, as a verb is
    inventory: Inventory = any_inventory.read_any_inventory(file, ssh_config=Path.home() / ".ssh/config")
    return inventory
