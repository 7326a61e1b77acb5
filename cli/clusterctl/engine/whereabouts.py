"""Which stack a verb means: a folder, or a cluster that is known on this computer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clusterctl_infra.config.load import load_cluster, load_whereabouts
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import stack_settings
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.clusters import cluster_names, find_cluster
from clusterctl.engine.stack import Stack, read_stack
from clusterctl.engine.stack_config import config_values, own_config
from clusterctl.home import Home
from clusterctl.stack_plan import config_folder
from clusterctl.views.again import stack_words


class Load(Protocol):
    """Reads a cluster.yaml. Raises ConfigError."""

    def __call__(self, path: Path, *, overrides: Mapping[str, str], source: str) -> ClusterConfig: ...


@dataclass(frozen=True, kw_only=True)
class Whereabouts:
    """A stack, and the names that go with it."""

    stack: Stack
    rehearse: bool
    """A real stack on the stand-in."""
    name: str
    region: str
    shown: str
    """As a person would type it again."""


def whereabouts_of_folder(
    directory: Path, *, stack_name: str, rehearse: bool, home: Home, load: Load = load_cluster
) -> Whereabouts:
    """The stack in a folder, by its configuration as `load` reads it. Raises UsageError, ConfigError."""
    stack = read_stack(directory, name=stack_name, verb="down")
    folder = config_folder(stack, home=home, rehearse=rehearse)
    values = config_values(own_config(folder / stack.config_file.name, written_for=stack.config_file))
    config = load(stack.cluster_file, overrides=stack_settings(values).overrides, source=stack.source)
    shown = stack_words(directory, stack_name=stack_name, rehearse=rehearse)
    return Whereabouts(stack=stack, rehearse=rehearse, name=config.name, region=config.region, shown=shown)


def whereabouts_of_cluster(inventory: Inventory) -> Whereabouts:
    """The stack that an inventory came from. Raises UsageError when this computer never ran it."""
    if inventory.stack_dir is None:
        raise UsageError(
            f"the folder of {inventory.cluster}'s stack is not known on this computer", hint="clusterctl down STACK"
        )
    stack = read_stack(Path(inventory.stack_dir), name=inventory.stack_name)
    return Whereabouts(
        stack=stack,
        rehearse=inventory.rehearsal and not stack.is_rehearsal_project,
        name=inventory.name,
        region=inventory.region,
        shown=f"--cluster {inventory.cluster}",
    )


def known_in_folder(folder: Path, *, home: Home) -> Inventory | None:
    """The only cluster that was last run from a folder: it can be ended although its file is broken now."""
    found = [find_cluster(home, name=name, environ={}) for name in cluster_names(home)]
    here = [inventory for inventory in found if inventory.stack_dir == str(folder)]
    return here[0] if len(here) == 1 else None


def find_whereabouts(
    directory: Path | None,
    cluster: str | None,
    *,
    stack_name: str,
    rehearse: bool,
    home: Home,
    environ: Mapping[str, str],
) -> Whereabouts:
    """The stack that the arguments mean. Raises UsageError when both a folder and a cluster are given."""
    if directory is not None and cluster is not None:
        raise UsageError(f"both the folder {directory} and --cluster {cluster}: say one")
    if directory is not None:
        try:
            return whereabouts_of_folder(directory, stack_name=stack_name, rehearse=rehearse, home=home)
        except ConfigError:
            known = known_in_folder(directory.expanduser().absolute(), home=home)
            if known is not None:
                return whereabouts_of_cluster(known)
        # A file that is broken now may still say which cluster it was: `down` needs no more of it.
        return whereabouts_of_folder(
            directory, stack_name=stack_name, rehearse=rehearse, home=home, load=load_whereabouts
        )
    return whereabouts_of_cluster(find_cluster(home, name=cluster, environ=environ))
