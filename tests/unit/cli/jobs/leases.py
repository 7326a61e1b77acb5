"""Takes leases of a node for tests, and lets them run out."""

from __future__ import annotations

from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout, read_json, write_json


def in_the_way(layout: Layout, job: str, by: str = "ada", *, gpus: int | None = None) -> list[str]:
    """The jobs that keep this one from taking the node, or `gpus` of its eight GPUs; empty where it was taken."""
    return [str(other["job"]) for other in lease.take(layout, job, by, wanted=gpus, gpus=8)[1]]


def run_out(layout: Layout, job: str = "first") -> None:
    """Makes the job's lease so old that it counts as given up."""
    file = layout.lease / f"{job}.json"
    write_json(file, {**read_json(file), "until_s": 0.0})
