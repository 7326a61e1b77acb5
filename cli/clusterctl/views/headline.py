"""The words that name a cluster at the top of a screen, and say when it is only rehearsed."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory


def hardware(inventory: Inventory) -> str:
    """`4 × p5.48xlarge · 32 × H100 80GB`; without GPUs only the machines."""
    machines = machine_words(inventory.instance_type, inventory.capacity)
    return machines_and_gpus(len(inventory.nodes), machines, inventory.gpus_per_node, inventory.gpu_name)


def machine_words(instance_type: str, capacity: str) -> str:
    """`spot p5.48xlarge`, and the type alone on demand."""
    return f"spot {instance_type}" if capacity == "spot" else instance_type


def machines_and_gpus(nodes: int, machine: str, gpus_per_node: int, gpu_name: str | None) -> str:
    """The same from the numbers alone."""
    machines = f"{nodes} × {machine}"
    return f"{machines} · {nodes * gpus_per_node} × {gpu_name}" if gpus_per_node and gpu_name else machines


def rehearsed(is_rehearsal: bool, has_gpus: bool) -> str:
    """` (rehearsed: simulated GPUs, simulated money)`, or nothing for a cluster on AWS."""
    if not is_rehearsal:
        return ""
    return " (rehearsed: simulated GPUs, simulated money)" if has_gpus else " (rehearsed: simulated money)"
