"""The folder of a cluster of hosts: a cluster.yaml with `target: hosts`, and no Pulumi program."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from clusterctl_infra.config.target import is_for_hosts
from clusterctl_infra.errors import NothingMatched, UsageError
from clusterctl_infra.names import HOSTS_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.known_clusters import VARIABLE, find_cluster, inventory_here
from clusterctl.engine.stacks_near import CLUSTER_FILE
from clusterctl.home import Home
from clusterctl.options import chosen_cluster

if TYPE_CHECKING:
    from clusterctl_infra.config.hosts import HostsConfig


@dataclass(frozen=True, kw_only=True)
class HostsFolder:
    """Its path, and as a person typed that."""

    path: Path
    typed: str

    def config(self) -> HostsConfig:
        """Its cluster.yaml, every host with its key. Raises ConfigError with all problems."""
        # Loaded on use: most folders are for AWS.
        load_hosts = importlib.import_module("clusterctl_infra.config.load_hosts").load_hosts
        config: HostsConfig = load_hosts(self.path / CLUSTER_FILE, source=f"{self.typed}/{CLUSTER_FILE}")
        return config


def hosts_folder(directory: Path) -> HostsFolder | None:
    """The folder, if its cluster.yaml says `target: hosts`; None otherwise."""
    path = directory.expanduser().absolute()
    if not (path / CLUSTER_FILE).is_file() or not is_for_hosts(path / CLUSTER_FILE):
        return None
    return HostsFolder(path=path, typed=shlex.quote(str(directory)))


def folder_of(inventory: Inventory) -> HostsFolder:
    """The folder from which a cluster of hosts was made. Raises UsageError if it is gone, or for something else now."""
    found = None if inventory.stack_dir is None else hosts_folder(Path(inventory.stack_dir))
    if found is None:
        message = f"{inventory.stack_dir} has no {CLUSTER_FILE} with target: hosts any more; put it back"
        raise UsageError(message, hint=f"clusterctl nodes --cluster {inventory.cluster}")
    return found


def hosts_folder_of(directory: Path | None, cluster: str | None) -> HostsFolder | None:
    """The folder of hosts that `up` is asked to bring up, by its folder or its cluster's name.

    None for anything else, also if both are given.
    """
    if cluster is None:
        return hosts_folder(Path() if directory is None else directory)
    if directory is not None:
        return None
    inventory = chosen_cluster(cluster)
    return folder_of(inventory) if inventory.is_hosts else None


def recorded_cluster(directory: Path | None, cluster: str | None, home: Home) -> Inventory | None:
    """The inventory of the cluster of hosts that `down` is asked to end; None for anything else.

    The folder's cluster.yaml is not needed, so it may be broken or gone. Raises NothingMatched if the folder is for
    hosts, but this computer knows no node among them.
    """
    if directory is None:
        wanted = find_cluster(home, name=cluster, environ=os.environ) if _is_known(cluster, home) else None
        return wanted if wanted is not None and wanted.is_hosts else None
    folder = hosts_folder(directory)
    here = str(directory.expanduser().absolute())
    known = [each for name in home.cluster_names if (each := inventory_here(home, name)) is not None and each.is_hosts]
    found = [each for each in known if each.stack_dir == here]
    if cluster is None and found:
        return found[0]
    if folder is not None and cluster is None:
        message = f"{folder.typed}: this computer knows of no node among its hosts"
        raise NothingMatched(message, hint=f"clusterctl up {folder.typed}")
    return None


def _is_known(cluster: str | None, home: Home) -> bool:
    """Whether an inventory here has this name, or is the only one if no name is given; else `down` asks the state."""
    names = home.cluster_names
    wanted = cluster or os.environ.get(VARIABLE)
    return len(names) == 1 if wanted is None else wanted in names or wanted + HOSTS_SUFFIX in names


def refuse_flags(*, but: Collection[str]) -> None:
    """Raises UsageError for flags of the current verb that do not apply to hosts; `but` names those that do."""
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name is not None
        and parameter.name not in but
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        applies = "does not apply" if len(given) == 1 else "do not apply"
        message = f"{', '.join(given)}: {applies} to target: hosts, where no machine is made or ended"
        raise UsageError(message, hint=f"{context.command_path} --help")
