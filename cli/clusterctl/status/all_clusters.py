"""`clusterctl status` where several clusters are known and none is named: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.errors import ClusterctlError

from clusterctl.engine.known_clusters import VARIABLE
from clusterctl.status.overview import Overview
from clusterctl.status.view import status_json
from clusterctl.text.quantities import clock, duration, usd
from clusterctl.text.table import render_table

AT_A_TIME = 4
"""How many clusters are asked about at once: each look asks AWS and all of the cluster's nodes."""
_HEADER = ("cluster", "state", "nodes", "$/h", "deadline")


@dataclass(frozen=True, kw_only=True)
class ClusterSeen:
    """One cluster, or why nothing could be found out about it."""

    cluster: str
    seen: Overview | None
    trouble: str | None = None

    @property
    def is_ready(self) -> bool:
        """Whether every node that it should have is ready."""
        return self.seen is not None and self.seen.ready == len(self.seen.nodes)


def look_at_all(clusters: Sequence[str], look: Callable[[str], Overview]) -> list[ClusterSeen]:
    """What `look` finds of each cluster, several at a time, in the given order; one that fails stops no other."""

    def looked(cluster: str) -> ClusterSeen:
        try:
            return ClusterSeen(cluster=cluster, seen=look(cluster))
        except ClusterctlError as e:
            return ClusterSeen(cluster=cluster, seen=None, trouble=e.message)

    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        return list(pool.map(looked, clusters))


def all_text(rows: Sequence[ClusterSeen]) -> str:
    """The table, what could not be read below it, and how to see one cluster's nodes."""
    table = render_table(_HEADER, [_row(row) for row in rows], right=("nodes", "$/h"))
    troubles = [f"  {row.cluster}: {row.trouble}" for row in rows if row.trouble is not None]
    named = f"clusterctl status --cluster {rows[0].cluster}"
    return "\n".join([table, *troubles, f"  the nodes of one: {named}, or export {VARIABLE}={rows[0].cluster}"])


def all_json(rows: Sequence[ClusterSeen]) -> dict[str, object]:
    """Each cluster as `status --json --cluster` prints it; for one that could not be read, its name and the trouble."""
    return {
        "clusters": [
            {"cluster": row.cluster, "trouble": row.trouble} if row.seen is None else status_json(row.seen)
            for row in rows
        ]
    }


def _row(row: ClusterSeen) -> tuple[str, ...]:
    if row.seen is None:
        return (row.cluster, "unknown", "–", "–", "–")
    inventory, now = row.seen.inventory, row.seen.facts.now
    deadline = datetime.fromisoformat(inventory.deadline)
    return (
        row.cluster,
        _state(row.seen, is_over=deadline <= now),
        f"{row.seen.ready}/{len(row.seen.nodes)}",
        usd(inventory.usd_per_hour),
        "–" if row.seen.is_down or inventory.is_hosts else _end(deadline, now),
    )


def _state(seen: Overview, *, is_over: bool) -> str:
    """`ready`, `down`, `ended`, or the states of the nodes that are not ready: `unreachable, booting`."""
    if seen.is_down:
        return "down"
    if is_over and not seen.ready:
        return "ended"
    return ", ".join(dict.fromkeys(node.state for node in seen.nodes if not node.is_ready)) or "ready"


def _end(deadline: datetime, now: datetime) -> str:
    left = duration(deadline - now)
    return f"{clock(deadline, now)} (in {left})" if deadline > now else f"{clock(deadline, now)} ({left} ago)"
