"""Which groups wait for which others, as the inputs of their tasks say. Pure."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping, Sequence

from clusterctl.workflows.model import Group


def upstream(groups: Sequence[Group]) -> dict[str, tuple[str, ...]]:
    """Group → the groups whose tasks' outputs it reads, each once; its own tasks and unknown ones are left out."""
    group_of = {task.name: group.name for group in groups for task in group.tasks}
    found: dict[str, tuple[str, ...]] = {}
    for group in groups:
        wanted = [each.task for task in group.tasks for each in task.inputs if each.task is not None]
        before = (group_of.get(name) for name in wanted)
        found[group.name] = tuple(dict.fromkeys(name for name in before if name is not None and name != group.name))
    return found


def circle(waits_for: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Groups that wait for each other in a cycle, the first one again at the end; empty if there is no cycle."""
    try:
        graphlib.TopologicalSorter(waits_for).prepare()
    except graphlib.CycleError as e:
        return [str(name) for name in reversed(e.args[1])]
    return ()
