"""Takes a node, or GPUs of it, for a job."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, Dict

from clusterctl.on_node.job import lease
from clusterctl.on_node.job.layout import Layout, read_json

NVIDIA_SMI_S = 20


def answer_take(layout: Layout, job: str, by: str, wanted: str, ports: str) -> Dict[str, Any]:
    """The verb `take`. `wanted`: all, or a number of GPUs; `ports`: the job's own, as `1,2`.

    `gpus`: the indices of the GPUs that the job has now, null for all of them; `holders`: who is in the way.
    `are_ports_taken`: another job was given one of them meanwhile.
    """
    declared = int(read_json(layout.node_file)["gpus_per_node"])
    count = None if wanted == "all" else int(wanted)
    own = [int(port) for port in ports.split(",")]
    there = 0 if count is None else gpus(declared)
    try:
        indices, in_the_way = lease.take(layout, job, by, wanted=count, gpus=there, ports=own)
    except lease.PortsTaken:
        return {"gpus": None, "holders": [], "are_ports_taken": True}
    return {"gpus": indices, "holders": in_the_way}


def gpus(declared: int) -> int:
    """How many GPUs the driver counts; where there is no driver to ask, how many the plan says."""
    if not declared or shutil.which("nvidia-smi") is None:
        return declared
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=NVIDIA_SMI_S)
    except (OSError, subprocess.TimeoutExpired):
        return declared
    return sum(line.startswith(b"GPU ") for line in done.stdout.splitlines()) if not done.returncode else declared
