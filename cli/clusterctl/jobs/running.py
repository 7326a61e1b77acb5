"""The jobs that run on some nodes now, for whoever is about to end those nodes: a short look that never fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.on_node.running_jobs import LINE, running_jobs
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.remote_command import usable_keys
from clusterctl.text.node_set import fold_numbers

CONNECT_S = 5.0
LOOK_S = 5.0


def jobs_running_on(inventory: Inventory, nodes: Sequence[InventoryNode], home: Home) -> dict[str, tuple[int, ...]]:
    """Job → the slots among these on which it runs. A node that does not answer in time has none."""
    if not nodes:
        return {}
    try:
        keys = usable_keys(inventory, home)
        deadlines = Deadlines.within(CONNECT_S)
        results = run_on_nodes(inventory, nodes, LINE, keys=keys, deadlines=deadlines, timeout_s=LOOK_S)
    except (ClusterctlError, OSError):  # a full disk keeps nobody from `down`
        return {}
    found: dict[str, tuple[int, ...]] = {}
    for slot in sorted(results):
        for job in running_jobs(results[slot].stdout.decode(errors="replace")):
            found[job] = (*found.get(job, ()), slot)
    return found


def jobs_text(jobs: Mapping[str, Sequence[int]]) -> str:
    """`train-1123 on 0-3, other on 5`."""
    return ", ".join(f"{job} on {fold_numbers(slots)}" for job, slots in jobs.items())
