"""Leases of a node as tests take them, and let them run out."""

from __future__ import annotations

from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout, read_json, write_json


def in_the_way(layout: Layout, job: str, by: str = "ada", *, gpus: int | None = None) -> list[str]:
    """Takes the node, or so many of its eight GPUs: the jobs that keep this one from it, none where it has them now."""
    return [str(other["job"]) for other in lease.take(layout, job, by, wanted=gpus, gpus=8)[1]]


def run_out(layout: Layout, job: str = "first") -> None:
    """The lease is as old as one that was given up."""
    file = layout.lease / f"{job}.json"
    write_json(file, {**read_json(file), "until_s": 0.0})
