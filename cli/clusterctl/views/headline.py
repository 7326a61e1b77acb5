"""The words that name a cluster at the top of a screen, and say when it is only rehearsed."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory


def hardware(inventory: Inventory) -> str:
    """`4 × p5.48xlarge · 32 × H100 80GB`; without GPUs only the machines."""
    nodes = len(inventory.nodes)
    machines = f"{nodes} × {inventory.instance_type}"
    if not inventory.gpus_per_node or inventory.gpu_name is None:
        return machines
    return f"{machines} · {nodes * inventory.gpus_per_node} × {inventory.gpu_name}"


def rehearsed(is_rehearsal: bool, has_gpus: bool) -> str:
    """` (rehearsed: simulated GPUs, simulated money)`, or nothing for a cluster on AWS."""
    if not is_rehearsal:
        return ""
    return " (rehearsed: simulated GPUs, simulated money)" if has_gpus else " (rehearsed: simulated money)"
