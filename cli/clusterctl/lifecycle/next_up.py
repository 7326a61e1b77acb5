"""What the next `up` would do to a cluster that exists, as `plan` shows it, and which cluster that is.

The code that finds it out is in next_up_by_state.py, which takes as long to load as all the rest of `plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.outputs import Inventory

from clusterctl.engine.known_clusters import clusters_of_stack
from clusterctl.engine.stack import Stack
from clusterctl.home import Home
from clusterctl.lifecycle.preview import NodePreview, late_lines, made_anew_lines
from clusterctl.text.node_set import fold_names
from clusterctl.text.quantities import clock


@dataclass(frozen=True, kw_only=True)
class NextUp:
    """What happens to the nodes; names by slot."""

    makes: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    replaces: tuple[NodePreview, ...] = ()
    """Made anew: the data on their disks is lost."""
    later: tuple[NodePreview, ...] = ()
    """Running on with settings that only a new machine takes."""
    is_reserved: bool = True
    """Whether the places of machines that are made anew are held meanwhile."""
    extended_until: datetime | None = None
    """The end to which `extend` moved this run: caps.runtime of the file counts from the next run on."""
    refused: tuple[str, ...] = ()
    """Why `up` would change nothing."""


def cluster_of(stack: Stack, *, home: Home, is_rehearsal: bool) -> Inventory | None:
    """The cluster that was last run from the stack's folder, whatever name its file says now."""
    known = clusters_of_stack(home, folder=stack.directory, stack_name=stack.name, is_rehearsal=is_rehearsal)
    return next(iter(known), None)


def next_up_rows(found: NextUp, *, now: datetime) -> list[tuple[str, str]]:
    """The lines of `plan` about the next `up`: each a word and what it is about."""
    rows = [("makes", fold_names(found.makes))] if found.makes else []
    rows += [("ends", f"{fold_names(found.ends)}: the data on their disks is lost")] if found.ends else []
    rows += [("replace", line) for line in made_anew_lines(found.replaces, is_reserved=found.is_reserved)]
    rows += [("later", line) for line in late_lines(found.later)]
    if found.extended_until is not None:
        moved = f"moved to {clock(found.extended_until, now)} by extend; caps.runtime counts from the next run on"
        rows.append(("deadline", moved))
    rows += [("refused", line) for line in found.refused]
    return rows or [("nothing", "no node is made, ended or replaced")]


def next_up_json(found: NextUp) -> dict[str, object]:
    """`next_up` of `plan --json`."""

    def rows(previews: tuple[NodePreview, ...]) -> list[dict[str, object]]:
        return [{"node": node.name, "reasons": list(node.reasons)} for node in previews]

    return {
        "makes": list(found.makes),
        "ends": list(found.ends),
        "replaces": rows(found.replaces),
        "later": rows(found.later),
        "extended_until": None if found.extended_until is None else found.extended_until.isoformat(),
        "refused": list(found.refused),
    }
