"""`clusterctl job cp`: copies files out of a job's own folder.

What a node sends is put in place only after all of it has arrived and was unpacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.fetching import Fetched, fetch
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.unpacking import move_into, staging_folder
from clusterctl.on_node.job.pack import OVER_LIMIT, WORK
from clusterctl.output import Output
from clusterctl.system.disk_space import existing, look_at

GIB = 1024**3
NOT_IN_PLACE = "not all was put in place"
MOST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class CopyRequest:
    """Which files to copy, and the folder here that they go to."""

    job: JobState
    members: tuple[InventoryNode, ...]
    path: str
    """Below the job's own folder."""
    target: Path
    most_bytes: int
    """The most to take from one node."""


def copy_out(request: CopyRequest, nodes: JobNodes, output: Output) -> int:
    """Copies the files and returns 0, or the exit code of a failure. Raises ClusterctlError.

    When several nodes are asked, each gets a folder with its name below the target.
    """
    try:
        fetched = _copied(request, nodes)
    except OSError as e:
        why = f"{e.filename or request.target} cannot be written: {e.strerror}"
        raise ClusterctlError(f"{why}; nothing was kept", hint=look_at(existing(request.target))) from e
    return _tell(fetched, request.most_bytes, output)


def _copied(request: CopyRequest, nodes: JobNodes) -> list[Fetched]:
    """What came from each node. Raises OSError where it cannot be written here."""
    job, target = request.job, request.target
    members = request.members[:1] if job.spec.get("shared") else request.members
    with staging_folder(target) as staging:
        fetched = fetch(
            nodes,
            members,
            (job.name, WORK, request.path),
            lambda node: staging / node.name,
            most_bytes=request.most_bytes,
            archives_dir=staging,
        )
        return [placed(each, staging, target if len(members) == 1 else target / each.node.name) for each in fetched]


def placed(each: Fetched, staging: Path, target: Path) -> Fetched:
    """Moves a node's files from `staging` into the target, if all of them came.

    Returns what came from the node, with the names that were left out while moving, or the error that stopped it.
    """
    if each.error is not None:
        return each
    try:
        moved = move_into(staging / each.node.name, target)
    except OSError as e:
        return replace(each, error=f"{NOT_IN_PLACE}: {e.strerror}: {e.filename2 or e.filename}")
    blocked = "; ".join(moved.in_the_way[:MOST_SHOWN])
    error = f"{NOT_IN_PLACE}: {blocked}; move what is here away, and copy again" if blocked else None
    return replace(each, left_out=(*each.left_out, *moved.left_out), error=error)


def _tell(fetched: Sequence[Fetched], most_bytes: int, output: Output) -> int:
    failed = [each for each in fetched if each.error is not None]
    for each in fetched:
        is_kept = each.error is None or each.error.startswith(NOT_IN_PLACE)
        output.note(each.summary if is_kept else f"{each.summary}; nothing of it was kept")
    if any(OVER_LIMIT in str(each.error) for each in failed):
        helps = "raise it with --limit SIZE, or name a PATH below the job's folder"
        output.note(f"the limit is {most_bytes // GIB}GiB a node: {helps}")
    if failed and len(fetched) == 1:
        return ClusterctlError.exit_code
    return SomeNodesFailed.exit_code if failed else 0
