"""An app's own cluster as this computer knows it from an earlier call; no module that makes clusters is loaded here."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory, read_inventory

from clusterctl.engine.stacks_near import CLUSTER_FILE
from clusterctl.functions.cluster_text import AppCluster, cluster_text
from clusterctl.functions.needs import ClusterNeeds
from clusterctl.home import Home, home_directory
from clusterctl.text.quantities import clock, duration


def kept_cluster(cluster: AppCluster, needs: ClusterNeeds) -> Inventory | None:
    """The app's cluster, if it is up as these needs describe it and its deadline is not over; None otherwise.

    Only two files are read, its inventory and its cluster.yaml; nobody is asked.
    """
    home = home_directory(os.environ)
    known = known_here(cluster, home)
    if known is None or text_of(folder_of(cluster, home) / CLUSTER_FILE) != cluster_text(cluster, needs):
        return None
    is_whole = len(known.nodes) >= needs.num_instances and known.generation > 0
    if not is_whole or datetime.fromisoformat(known.deadline) <= datetime.now(UTC):
        return None
    _tell_of_deadline(known, needs)
    return known


def known_here(cluster: AppCluster, home: Home) -> Inventory | None:
    """The cluster's inventory, if this computer has one of this app's folder, and its nodes have not ended."""
    try:
        inventory = read_inventory(inventory_file(cluster, home))
    except (ClusterctlError, OSError):
        return None
    is_own = inventory.stack_dir == str(folder_of(cluster, home))
    return inventory if is_own and not inventory.run_nodes_down else None


@contextlib.contextmanager
def noting_half_made(cluster: AppCluster, home: Home, note: Callable[[], None]) -> Iterator[None]:
    """For the block that brings the cluster up: calls `note` if the block fails and a new cluster exists by then."""
    is_new = known_here(cluster, home) is None
    try:
        yield
    except BaseException:
        if is_new and known_here(cluster, home) is not None:
            note()
        raise


def folder_of(cluster: AppCluster, home: Home) -> Path:
    """The stack folder of an app's cluster, whether it exists or not."""
    return home.apps_dir / cluster.name


def inventory_file(cluster: AppCluster, home: Home) -> Path:
    """The inventory file of an app's cluster, whether it exists or not."""
    return home.inventory_file(cluster.name + (REHEARSAL_SUFFIX if cluster.is_rehearsal else ""))


def text_of(file: Path) -> str | None:
    """The text of a file; None if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def is_set(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a variable is 1. Raises UsageError unless it is 1, 0 or empty: another value may mean yes, and cost
    money."""
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise UsageError(f"{name}={value}: 1, or 0, or not set", hint=f"export {name}=1")
    return value == "1"


def checked_access(access: object) -> dict[str, object]:
    """The value of `access` in cluster.yaml for what App was given. Raises UsageError."""
    if access == "private":
        return {"mode": "private"}
    if isinstance(access, Mapping) and all(isinstance(value, str | Sequence) for value in access.values()):
        return {
            str(key): value if isinstance(value, str) else [str(each) for each in value]
            for key, value in access.items()
        }
    accepted = "'private', or {'ssh_from': ['your address/32']}, as in cluster.yaml"
    raise UsageError(f"access={access!r}: write {accepted}", hint="docs/config.md#access")


def _tell_of_deadline(inventory: Inventory, needs: ClusterNeeds) -> None:
    now = datetime.now(UTC)
    deadline = datetime.fromisoformat(inventory.deadline)
    left = deadline - now
    if needs.max_run_time_hours is not None and left.total_seconds() < needs.max_run_time_hours * 1800:
        again = f"clusterctl extend --cluster {shlex.quote(inventory.cluster)} …"
        message = f"{inventory.cluster} ends {clock(deadline, now)}, in {duration(left)}: less than half of"
        sys.stderr.write(f"{message} max_run_time_hours; {again} gives it more\n")
