"""The words at the top of a screen: which cluster, its cost and its end, and that it is only rehearsed."""

from __future__ import annotations

from datetime import datetime, timedelta

from clusterctl_infra.outputs import Inventory

from clusterctl.text.quantities import clock, duration, usd


def hardware(inventory: Inventory) -> str:
    """`4 × p5.48xlarge · 32 × H100 80GB`; without GPUs only the machines."""
    machines = machine_words(inventory.instance_type, inventory.capacity)
    return machines_and_gpus(len(inventory.nodes), machines, inventory.gpus_per_node, inventory.gpu_name)


def machine_words(instance_type: str, capacity: str) -> str:
    """`spot p5.48xlarge`, and the type alone on demand."""
    return f"spot {instance_type}" if capacity == "spot" else instance_type


def machines_and_gpus(nodes: int, machine: str, gpus_per_node: int, gpu_name: str | None) -> str:
    """`4 × p5.48xlarge · 32 × H100 80GB`, and the machines alone where they have no GPUs."""
    machines = f"{nodes} × {machine}"
    return f"{machines} · {nodes * gpus_per_node} × {gpu_name}" if gpus_per_node and gpu_name else machines


def rehearsed(is_rehearsal: bool, has_gpus: bool) -> str:
    """` (rehearsed: simulated GPUs, simulated money)`, or nothing for a cluster on AWS."""
    if not is_rehearsal:
        return ""
    return " (rehearsed: simulated GPUs, simulated money)" if has_gpus else " (rehearsed: simulated money)"


def money(inventory: Inventory, spent_usd: float | None) -> str:
    """`about $265.85 of $1000.00`, or that the cost is unknown; for hosts, their price per hour by cluster.yaml."""
    if inventory.is_hosts:
        return "cost unknown" if inventory.usd_per_hour is None else f"{usd(inventory.usd_per_hour)}/h"
    text = "cost unknown" if spent_usd is None else f"{about(inventory)} {usd(spent_usd)}"
    return text if inventory.budget_usd is None else f"{text} of {usd(inventory.budget_usd)}"


def about(inventory: Inventory) -> str:
    """`about`, or `at most` for spot machines, which are counted at their maximum price."""
    return "at most" if inventory.capacity == "spot" else "about"


def advice(inventory: Inventory, now: datetime) -> list[str]:
    """The lines for a cluster of hosts: that nothing ends them, and until when their use was meant to last."""
    lines = ["these hosts are not clusterctl's: no deadline and no cap ends them, or a job on them"]
    if inventory.advisory_end is not None:
        at = datetime.fromisoformat(inventory.advisory_end)
        word = "is meant to last until" if at > now else "was meant to end at"
        lines.append(f"their use {word} {clock(at, now)} (caps.runtime, which is advice only)")
    return lines


def ends(inventory: Inventory, now: datetime) -> str:
    """`ends 17:22 UTC (in 3 h 19 m: budget)`, afterwards `ended 17:22 UTC (4 m ago: budget)`; for hosts, why they do
    not end.
    """
    if inventory.is_hosts:
        return inventory.deadline_reason
    at = datetime.fromisoformat(inventory.deadline)
    left = at - now
    if left > timedelta(0):
        return f"ends {clock(at, now)} (in {duration(left)}: {inventory.deadline_reason})"
    return f"ended {clock(at, now)} ({duration(left)} ago: {inventory.deadline_reason})"
