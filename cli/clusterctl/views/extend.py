"""What `clusterctl extend` asks and says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from clusterctl_infra.outputs import Inventory
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.lifecycle.new_deadline import Move
from clusterctl.views.headline import rehearsed
from clusterctl.views.quantities import clock, count, duration, usd


def move_told(cluster_plan: ClusterPlan, move: Move, *, now: datetime) -> str:
    """`4 nodes run 2 h longer, until 19:22 UTC instead of 17:22 UTC: $440.36 more at $220.18/h`."""
    nodes, added = len(cluster_plan.slots), move.added(cluster_plan)
    ends = f"{clock(move.after, now)} instead of {clock(move.before, now)}"
    length = duration(move.after - move.before)
    if move.after < move.before:
        return f"{count(nodes, 'node')} end{'s' if nodes == 1 else ''} {length} earlier, at {ends}"
    if move.after == move.before:
        return f"the deadline stays {clock(move.after, now)}"
    more = f"{usd(added.until_deadline_usd)} more at {usd(added.usd_per_hour)}/h"
    return f"{count(nodes, 'node')} run{'s' if nodes == 1 else ''} {length} longer, until {ends}: {more}"


def move_line(inventory: Inventory, move: Move, *, now: datetime) -> str:
    """`train · ends 19:22 UTC (in 3 h 19 m: extend), was 17:22 UTC · generation 3`."""
    left = duration(max(timedelta(0), move.after - now))
    was = "" if move.after == move.before else f", was {clock(move.before, now)}"
    ends = f"ends {clock(move.after, now)} (in {left}: {inventory.deadline_reason}){was}"
    label = rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)
    return f"{inventory.name} · {ends} · generation {inventory.generation}{label}"


def untold(name: str, move: Move, why: str, *, now: datetime) -> str:
    """What it means that a node did not take the new deadline."""
    before, after = clock(move.before, now), clock(move.after, now)
    if move.after > move.before:
        means = f"still ends at {before}"
    elif move.after < move.before:
        means = f"would itself run until {before}; AWS ends it at {after}"
    else:
        means = f"may end at another time than {after}"
    return f"{name}: {means} ({why})"


def move_json(
    inventory: Inventory, move: Move, cluster_plan: ClusterPlan, untaken: Mapping[int, str]
) -> dict[str, object]:
    """What `clusterctl extend --json` prints."""
    added = move.added(cluster_plan).until_deadline_usd
    return {
        "cluster": inventory.cluster,
        "cluster_id": inventory.cluster_id,
        "rehearsal": inventory.rehearsal,
        "simulated": inventory.rehearsal,
        "deadline": move.after.isoformat(),
        "deadline_before": move.before.isoformat(),
        "deadline_reason": inventory.deadline_reason,
        "budget_usd": inventory.budget_usd,
        "added_usd": None if added is None else round(added, 2),
        "generation": inventory.generation,
        "nodes": [
            {
                "slot": node.slot,
                "name": node.name,
                "taken": node.slot not in untaken,
                "trouble": untaken.get(node.slot),
            }
            for node in inventory.nodes
        ],
    }
