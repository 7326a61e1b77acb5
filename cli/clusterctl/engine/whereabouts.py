"""Which stack a verb means: a folder, or a cluster that is known on this computer."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.load import load_cluster, load_whereabouts
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import stack_settings
from clusterctl_infra.errors import ConfigError, NothingMatched, UsageError
from clusterctl_infra.names import IDENTITY_TYPE, REHEARSAL_SUFFIX, USUAL_STACK_NAME
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import engine_environment
from clusterctl.engine.known_clusters import clusters_of_stack, find_cluster
from clusterctl.engine.known_folder import stack_of_cluster
from clusterctl.engine.run_file import read_record
from clusterctl.engine.stack import Stack, read_stack
from clusterctl.engine.stack_config import config_values, own_config
from clusterctl.engine.stack_plan import config_folder
from clusterctl.engine.stacks_near import STACK_FILES
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.text.next_commands import stack_words

PROJECT_FILES = ("Pulumi.yaml",)
"""The files that the engine needs to end a stack; cluster.yaml is not needed for that."""


class Load(Protocol):
    """Reads a cluster.yaml. Raises ConfigError."""

    def __call__(self, path: Path, *, overrides: Mapping[str, str], source: str) -> ClusterConfig: ...


class NamesInState(Protocol):
    """The name and the region that a stack's state has for its cluster; None if it has none. Raises EngineError."""

    def __call__(self, stack: Stack, *, rehearse: bool) -> tuple[str, str] | None: ...


@dataclass(frozen=True, kw_only=True)
class Whereabouts:
    """A stack, and the names that go with it."""

    stack: Stack
    rehearse: bool
    """Whether a real stack is rehearsed on the stand-in."""
    name: str
    region: str
    shown: str
    """As a person would type it again."""


def whereabouts_of_folder(
    directory: Path, *, stack_name: str, rehearse: bool, home: Home, load: Load = load_cluster
) -> Whereabouts:
    """The stack in a folder, by its configuration as `load` reads it. Raises UsageError, ConfigError."""
    stack = read_stack(directory, name=stack_name, verb="down", rehearse=rehearse)
    folder = config_folder(stack, home=home, rehearse=rehearse)
    values = config_values(own_config(folder / stack.config_file.name, written_for=stack.config_file))
    config = load(stack.cluster_file, overrides=stack_settings(values).overrides, source=stack.source)
    shown = stack_words(directory, stack_name=stack_name, rehearse=rehearse)
    return Whereabouts(stack=stack, rehearse=rehearse, name=config.name, region=config.region, shown=shown)


def whereabouts_of_cluster(inventory: Inventory, *, files: Sequence[str] = STACK_FILES) -> Whereabouts:
    """The stack that an inventory came from. Raises UsageError where it is not there any more."""
    stack = stack_of_cluster(inventory, files=files)
    return Whereabouts(
        stack=stack,
        rehearse=inventory.rehearsal and not stack.is_rehearsal_project,
        name=inventory.name,
        region=inventory.region,
        shown=f"--cluster {inventory.cluster}",
    )


def find_whereabouts(
    directory: Path | None,
    cluster: str | None,
    *,
    stack_name: str,
    rehearse: bool,
    home: Home,
    environ: Mapping[str, str],
    in_state: NamesInState,
) -> Whereabouts:
    """The stack that is to be ended, whatever its cluster.yaml is like now.

    Raises UsageError when both a folder and a cluster are given, and ConfigError, NothingMatched, EngineError.
    """
    if directory is not None and cluster is not None:
        raise UsageError(f"the folder {directory} and --cluster {cluster}: give only one of them")
    if directory is not None:
        return _of_folder(directory, stack_name=stack_name, rehearse=rehearse, home=home, in_state=in_state)
    try:
        inventory = find_cluster(home, name=cluster, environ=environ)
    except NothingMatched:
        begun = None if cluster is None else _of_run(cluster, home=home, in_state=in_state)
        if begun is None:
            raise
        return begun
    return whereabouts_of_cluster(inventory, files=PROJECT_FILES)


def _of_folder(directory: Path, *, stack_name: str, rehearse: bool, home: Home, in_state: NamesInState) -> Whereabouts:
    try:
        return whereabouts_of_folder(directory, stack_name=stack_name, rehearse=rehearse, home=home)
    except ConfigError:
        stack = read_stack(directory, name=stack_name, verb="down", rehearse=rehearse)
        is_rehearsal = rehearse or stack.is_rehearsal_project
        known = clusters_of_stack(home, folder=stack.directory, stack_name=stack.name, is_rehearsal=is_rehearsal)
        if len(known) == 1:
            return whereabouts_of_cluster(known[0], files=PROJECT_FILES)
    try:
        # A file that is broken now may still say which cluster it was: `down` needs no more of it.
        return whereabouts_of_folder(
            directory, stack_name=stack_name, rehearse=rehearse, home=home, load=load_whereabouts
        )
    except ConfigError:
        names = in_state(stack, rehearse=rehearse)
        if names is None:
            raise
    shown = stack_words(directory, stack_name=stack_name, rehearse=rehearse)
    return Whereabouts(stack=stack, rehearse=rehearse, name=names[0], region=names[1], shown=shown)


def _of_run(cluster: str, *, home: Home, in_state: NamesInState) -> Whereabouts | None:
    """The stack that the file of a cut-off run names, if only that file is left of the cluster here; else None."""
    for candidate in (cluster, cluster + REHEARSAL_SUFFIX):
        record = read_record(home.run_file(candidate))
        if record is None or not record.stack:
            continue
        folder, *flags = shlex.split(record.stack)
        name = flags[flags.index("--stack-name") + 1] if "--stack-name" in flags else USUAL_STACK_NAME
        rehearse = "--rehearse" in flags
        found = _of_folder(Path(folder), stack_name=name, rehearse=rehearse, home=home, in_state=in_state)
        is_rehearsal = found.rehearse or found.stack.is_rehearsal_project
        if candidate == found.name + (REHEARSAL_SUFFIX if is_rehearsal else ""):
            return found
    return None


def names_in_state(stack: Stack, *, rehearse: bool, home: Home, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The name and the region of the cluster that the stack holds; None where it holds none. Raises EngineError."""
    environment = engine_environment(stack, rehearse=rehearse, home=home, environ=environ)
    state = PulumiEngine(stack=stack, environment=environment).export()
    return None if state is None else names_of_cluster(state, load_catalog().region_names)


def names_of_cluster(state: StackState, regions: Iterable[str]) -> tuple[str, str] | None:
    """The name and the region of the cluster in a state; None where it holds none. `regions`: all there are. Pure."""
    identity = state.find(IDENTITY_TYPE)
    zone = "" if identity is None else str(identity.outputs.get("zone") or "")
    # A zone's name begins with its region's: us-west-2b, and us-west-2-lax-1a.
    region = max((region for region in regions if zone.startswith(region)), key=len, default=zone[:-1])
    name = state.cluster_name
    return None if name is None or not region else (name, region)
