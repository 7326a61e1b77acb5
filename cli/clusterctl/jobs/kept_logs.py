"""Jobs kept on this computer: their output and how they ended, which outlive their nodes here.

`$CLUSTERCTL_HOME/jobs/CLUSTER/JOB/` has `job.json` and a folder for each node, `node-0` and so on.
"""

from __future__ import annotations

import heapq
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

from clusterctl_infra.names import clusters_called
from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.home import Home
from clusterctl.jobs.fetching import Fetched, fetch
from clusterctl.jobs.following import OutputLine, output_line
from clusterctl.jobs.job_state import JobState, merged
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.spec import NAME
from clusterctl.on_node.job import judge
from clusterctl.on_node.job.output_log import read_from
from clusterctl.on_node.job.pack import LOGS

MOST_JOBS = 100
"""How many jobs of a cluster are kept; beyond that the ones that were kept longest ago are removed."""
NODE_BYTES = 1024 * 1024 * 1024
"""The most to take from one node: its output has 64 MiB at most, and each rank's own log 32."""
FETCH_S = 120.0


@dataclass(frozen=True, kw_only=True)
class KeptJob:
    """A job as it was when its files came here."""

    state: JobState
    folder: Path
    kept_s: float
    states: Mapping[int, Mapping[str, Any]]
    """Slot → the last state that the node there reported, unchanged; in `state`, a job that had not ended is lost."""
    whole: Mapping[int, float] | None
    """Slot → `since_s` of the node's state when all of its files came; without nodes that sent a part or nothing.

    None where the version that kept the job did not write it down.
    """

    @property
    def short_slots(self) -> tuple[int, ...]:
        """The slots whose nodes are known not to have sent all of their files."""
        return () if self.whole is None else tuple(slot for slot in self.state.slots if slot not in self.whole)

    def has_all_since(self, slot: int, since_s: float) -> bool:
        """Whether all of the node's files came when it was in the state that began at `since_s` by its clock.

        Where it is not known what came whole: whether something came later than that, by this computer's clock.
        """
        if not self.node_folder(slot).is_dir():
            return False
        return self.kept_s > since_s if self.whole is None else self.whole.get(slot) == since_s

    def node_folder(self, slot: int) -> Path:
        """The folder that holds what the node in this slot sent."""
        return self.folder / f"node-{slot}"


def keep_job(
    job: JobState, nodes: JobNodes, members: Sequence[InventoryNode], home: Home, *, timeout_s: float = FETCH_S
) -> list[Fetched]:
    """Copies the job's files from `members` to this computer; returns what came from each. Raises OSError."""
    if NAME.fullmatch(job.name) is None:
        return []  # only a faulty node says such a name, and it would become the path of a folder
    folder = kept_folder(home, nodes.inventory.cluster) / job.name
    _make_room(folder, str(job.spec["cluster_id"]))
    for node in members:
        shutil.rmtree(folder / f"node-{node.slot}.new", ignore_errors=True)
    fetched = fetch(
        nodes,
        members,
        (job.name, LOGS, "."),
        lambda node: folder / f"node-{node.slot}.new",
        timeout_s=timeout_s,
        most_bytes=NODE_BYTES,
    )
    put_fetched(job, fetched, folder, now_s=time.time())
    _remove_oldest(folder.parent)
    return fetched


def put_fetched(job: JobState, fetched: Sequence[Fetched], folder: Path, *, now_s: float) -> None:
    """Puts what came from each node, `node-1.new`, in its place below the job's folder, and writes `job.json`.

    What came in part replaces nothing, and does not count as whole. Raises OSError.
    """
    earlier = _read_same(folder, job)
    # What a node last reported stays known while it is silent: it may be the one that decided how the job ended.
    states = {**({} if earlier is None else earlier.states), **job.by_slot}
    whole = {} if earlier is None else _still_whole(earlier, states)
    for each in fetched:
        slot = each.node.slot
        fresh, place = folder / f"node-{slot}.new", folder / f"node-{slot}"
        if each.error is None:
            # Not this computer's time: the node's clock may differ, and the state changes once more when the job ends.
            whole[slot] = float(states.get(slot, {}).get("since_s", 0.0))
        elif place.exists():
            shutil.rmtree(fresh, ignore_errors=True)
            continue
        if fresh.exists():
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
    row = {"spec": job.spec, "states": states, "kept_s": now_s, "whole": whole}
    put_in_place(folder / "job.json", json.dumps(row))


def kept_job(home: Home, cluster: str | None, name: str) -> KeptJob | None:
    """The job of this name that was kept last, of `cluster` or, if that is None, of any cluster; None without one."""
    if NAME.fullmatch(name) is None:
        return None
    if cluster is None:
        places = sorted(home.jobs_dir.glob("*"))
    else:
        places = [kept_folder(home, each) for each in clusters_called(cluster)]
    found = [kept for place in places if (kept := _read(place / name)) is not None]
    return max(found, key=lambda kept: kept.kept_s, default=None)


def kept_folder(home: Home, cluster: str) -> Path:
    """Where the jobs of a cluster are kept."""
    return home.jobs_dir / cluster


def kept_lines(kept: KeptJob, *, slots: Sequence[int], attempt: int) -> Iterator[OutputLine]:
    """The job's output on these slots in this attempt, merged by time."""
    nodes = [_node_lines(kept.node_folder(slot) / f"attempt-{attempt}", slot) for slot in slots]
    yield from heapq.merge(*nodes, key=lambda row: row.at_s)


def _node_lines(folder: Path, slot: int) -> Iterator[OutputLine]:
    for _, line in read_from(folder, (1, 0)):
        try:
            yield output_line(slot, line)
        except ValueError:
            continue


def _read_same(folder: Path, job: JobState) -> KeptJob | None:
    """What is kept of this very job; None if the nodes were others, or it was another attempt."""
    earlier = _read(folder)
    is_same = earlier is not None and all(
        earlier.state.spec.get(key) == job.spec.get(key) for key in ("cluster_id", "generation", "attempt")
    )
    return earlier if is_same else None


def _still_whole(earlier: KeptJob, states: Mapping[int, Mapping[str, Any]]) -> dict[int, float]:
    """What of `whole` still holds: of the nodes that have ended, since one that ran may have written more."""
    ended = {slot: float(words["since_s"]) for slot, words in states.items() if words["state"] in judge.FINAL}
    return {slot: since_s for slot, since_s in ended.items() if earlier.has_all_since(slot, since_s)}


def _read(folder: Path) -> KeptJob | None:
    try:
        row = json.loads((folder / "job.json").read_bytes())
        states: Mapping[int, Mapping[str, Any]] = {int(slot): words for slot, words in row["states"].items()}
        state = merged(row["spec"], {slot: _ended(words) for slot, words in states.items()})
        came = row.get("whole")
        whole = None if came is None else {int(slot): float(since_s) for slot, since_s in came.items()}
        return KeptJob(state=state, folder=folder, kept_s=float(row["kept_s"]), states=states, whole=whole)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _ended(words: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node's state, now that the node may be gone: a job that still ran when it was kept counts as lost."""
    if words["state"] in judge.FINAL:
        return words
    why = f"the cluster was ended while it was {words['state']}, or how it ended was not kept"
    return {**words, "state": judge.LOST, "outcome": judge.outcome(judge.LOST, why, ())}


def _make_room(folder: Path, cluster_id: str) -> None:
    """Makes the job's folder; one that belongs to an earlier cluster of the same name is renamed to make way."""
    old = _read(folder)
    if old is not None and old.state.spec.get("cluster_id") != cluster_id:
        aside = folder.with_name(f"{folder.name}.{old.state.spec.get('cluster_id')}")
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder.parent, 0o700)


def _remove_oldest(place: Path) -> None:
    kept = sorted((path.stat().st_mtime, path.parent) for path in place.glob("*/job.json"))
    for _, folder in kept[: max(0, len(kept) - MOST_JOBS)]:
        shutil.rmtree(folder, ignore_errors=True)
