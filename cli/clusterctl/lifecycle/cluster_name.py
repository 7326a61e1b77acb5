"""Refusals where a stack's state holds a cluster of another name than its file says, or no cluster at all."""

from __future__ import annotations

from pathlib import Path

from clusterctl_infra.errors import UsageError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.known_clusters import inventory_here
from clusterctl.engine.known_folder import cluster_name_in
from clusterctl.engine.other_projects import project_that_holds
from clusterctl.engine.stacks_near import CLUSTER_FILE
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.text.next_commands import down_again, edit


def held_cluster(change: Change, state: StackState) -> str:
    """The cluster as this computer knows it, `train@rehearsal`, by its name in the state: the file may have another."""
    return f"{state.cluster_name or change.name}{REHEARSAL_SUFFIX if change.is_rehearsal else ''}"


def refuse_other_name(change: Change, state: StackState, name: str) -> None:
    """Raises UsageError when the stack holds a cluster that was born with another name.

    Every logical name in the program has the cluster's in it: the engine would make all of it anew, and then end every
    machine that runs, and every file system.
    """
    refuse_shared_project(change, state, name)
    held, shown = state.cluster_name, change.typed(_folder(change))
    if held not in (None, name):
        raise other_name(held, name=name, shown=shown, source=change.stack.source)


def other_name(held: str | None, *, name: str, shown: str, source: str) -> UsageError:
    """The refusal where the stack `shown` holds the cluster `held`, and its file `source` says `name`."""
    return UsageError(
        f"{shown} holds the cluster {held}, and {source} says {name}: a new name means a new cluster, and all of "
        f"{held} would be ended for it; nothing was changed; write the old name back, or, to make the new cluster, end "
        f"the old one first: clusterctl down {shown}",
        hint=edit(source),
    )


def refuse_shared_project(change: Change, state: StackState, name: str) -> None:
    """Raises UsageError when the cluster in the state was made from another folder, with the same project name.

    Whoever copies a stack's folder copies its project name, too.

    To Pulumi both folders are one stack: an `up` here would work on that cluster, and a `down` would end it.
    """
    held, stack = state.cluster_name, change.stack
    if held in (None, name):
        return
    cluster = held_cluster(change, state)
    known = inventory_here(change.home, cluster)
    if known is None or known.cluster_id != state.cluster_id or known.stack_dir in (None, str(stack.directory)):
        return
    other = Path(str(known.stack_dir))
    if cluster_name_in(other / CLUSTER_FILE) == held:
        raise UsageError(
            f"{stack.project_file} and {other}/Pulumi.yaml name one project, {stack.project}, so that to Pulumi both "
            f"folders are one stack, and it holds the cluster {held} of {other}; nothing was changed; give the project "
            f"in {_folder(change)} a name of its own (name: {name}); to end {held}: clusterctl down --cluster "
            f"{cluster}",
            hint=edit(stack.project_file),
        )


def refuse_renamed_project(change: Change) -> None:
    """Raises UsageError where the stack holds nothing because its project has another name than when it was made.

    The state of the cluster is found under the old name alone: a `down` would end nothing, and an `up` would make a
    second cluster.
    """
    stack, known = change.stack, inventory_here(change.home, change.cluster)
    if known is None or (known.stack_dir, known.stack_name) != (str(stack.directory), stack.name):
        return
    held_by = project_that_holds(change.engine.backend_url(), stack, cluster_id=known.cluster_id)
    if held_by is not None:
        raise UsageError(
            f"{stack.project_file} names the project {stack.project}, and Pulumi has {known.cluster} under the name "
            f"{held_by}: nothing was changed; write name: {held_by} back",
            hint=edit(stack.project_file),
        )


def refuse_other_stack(change: Change, known: Inventory) -> None:
    """Raises UsageError when `known`, which this stack does not hold, belongs to another stack or another folder."""
    stack, made_in = change.stack, known.stack_dir
    if (
        made_in is None
        or not Path(made_in).is_dir()
        or (made_in, known.stack_name) == (str(stack.directory), stack.name)
    ):
        return
    raise UsageError(
        f"{change.typed(_folder(change))} holds nothing, and {known.cluster} belongs to the stack {known.stack_name} "
        f"of {made_in}: nothing was changed",
        hint=down_again(known),
    )


def _folder(change: Change) -> Path:
    return change.stack.typed or change.stack.directory
