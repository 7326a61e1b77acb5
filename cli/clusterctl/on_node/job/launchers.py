"""The argv of each launcher on one node of a job, and the files that it reads. Pure.

torchrun's flags: static rendezvous, so that ranks follow the order of nodes and not of names or of arrival
(pytorch#191190), and no restarts of its own (`--max-restarts` counts per node, pytorch#147064); torch 2.2 to 2.15.
accelerate 1.15, DeepSpeed 0.19, Open MPI 4.1 and 5.0: read in their sources, 2026-11. docs/jobs.md says what was run.
"""

from __future__ import annotations

import json
from typing import Any, List, Mapping

from clusterctl.on_node.job.launch import program

TORCHRUN, ACCELERATE, PLAIN, MPI = "torchrun", "accelerate", "plain", "mpi"
DEEPSPEED, DEEPSPEED_RUNNER = "deepspeed", "deepspeed-runner"
TENSORFLOW, JAX = "tensorflow", "jax"
LAUNCHERS = (TORCHRUN, ACCELERATE, DEEPSPEED, DEEPSPEED_RUNNER, TENSORFLOW, JAX, MPI, PLAIN)
BY_TORCHRUN = (TORCHRUN, DEEPSPEED)
ONE_EACH = (TENSORFLOW, JAX, PLAIN)
"""Their supervisor starts the ranks itself, and `--nproc auto` is one process that has all GPUs of its node."""
EVEN = (ACCELERATE, DEEPSPEED_RUNNER)
"""Each node has equally many processes: accelerate divides its total, and DeepSpeed's local ranks are remainders."""
HOSTFILE, ACCELERATE_FILE, JAX_FILE, AGENT_FILE = "hostfile", "accelerate.json", "jax_main.py", "mpi-agent"
LOCAL_RANK_BEHIND = "--local-rank-behind="
"""A flag of a rank's parent: behind this many words of the program it puts `--local_rank=N`, as DeepSpeed would."""
Argv = List[str]


def argv(spec: Mapping[str, Any], node_rank: int, rank_parent: Argv, folder: str) -> list[Argv]:
    """The argv of each process that the node's supervisor starts. `rank_parent` runs a rank and says how it ended.

    `folder` is the job's on the node. mpirun asks the supervisors of the other nodes to start what it needs there.
    """
    launcher, nproc = spec["launcher"], int(spec["members"][node_rank]["nproc"])
    if launcher in BY_TORCHRUN:
        return [_torchrun(spec, node_rank, rank_parent)]
    if launcher == ACCELERATE:
        return [_accelerate(spec, node_rank, rank_parent, folder)]
    if launcher == DEEPSPEED_RUNNER:
        return [_deepspeed_runner(spec, node_rank, rank_parent, folder)]
    if launcher == MPI:
        return [_mpirun(spec, rank_parent, folder)] if node_rank == 0 else []
    own = _by_jax(spec, folder) if launcher == JAX else program(spec)
    return [[*rank_parent, "--", *own] for _ in range(nproc)]


def files(spec: Mapping[str, Any], parent: str, jax_main: str) -> dict[str, str]:
    """Name → text of each file that lies in the job's folder for its launcher.

    `parent`: the node's program for jobs; `jax_main`: the text of jax_main.py.
    """
    found = {HOSTFILE: hostfile(spec)}
    if spec["launcher"] == ACCELERATE:
        found[ACCELERATE_FILE] = json.dumps(_accelerate_config(spec), indent=1)
    if spec["launcher"] == JAX:
        found[JAX_FILE] = jax_main
    if spec["launcher"] == MPI:
        found[AGENT_FILE] = '#!/bin/sh\nexec python3 -IS %s mpi-agent "$@"\n' % parent
    return found


def hostfile(spec: Mapping[str, Any]) -> str:
    """The job's nodes with their processes, for MPI and DeepSpeed."""
    is_deepspeed = spec["launcher"] == DEEPSPEED_RUNNER
    rows = [
        (member["name"], max(member.get("gpu_indices") or [0], default=0) + 1 if is_deepspeed else 0, member["nproc"])
        for member in spec["members"]
    ]
    return "".join("%s slots=%d\n" % (name, max(least, nproc)) for name, least, nproc in rows)


def total(spec: Mapping[str, Any]) -> int:
    """How many processes the job has on all its nodes."""
    return sum(int(member["nproc"]) for member in spec["members"])


def mpi_variables(folder: str) -> dict[str, str]:
    """What makes mpirun ask our agent instead of ssh; names of Open MPI 4 and, with PRTE, of Open MPI 5."""
    agent = "%s/%s" % (folder, AGENT_FILE)
    return {
        "OMPI_MCA_plm_rsh_agent": agent,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_plm_ssh_agent": agent,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def _torchrun(spec: Mapping[str, Any], node_rank: int, rank_parent: Argv) -> Argv:
    return [
        *("python3", "-m", "torch.distributed.run"),
        *("--nnodes", str(len(spec["members"]))),
        *("--node-rank", str(node_rank)),
        *("--nproc-per-node", str(spec["members"][node_rank]["nproc"])),
        *("--rdzv-backend", "static"),
        *("--master-addr", spec["members"][0]["address"]),
        *("--master-port", str(spec["master_port"])),
        *("--rdzv-id", "%s-%d" % (spec["job"], spec["attempt"])),
        *("--max-restarts", "0"),
        *spec["launcher_options"],
        *("--no-python", *rank_parent, "--", *program(spec)),
    ]


def _accelerate(spec: Mapping[str, Any], node_rank: int, rank_parent: Argv, folder: str) -> Argv:
    """accelerate's argv. It would merge a file in the person's cache silently, so it is always given one.

    `--multi_gpu` is in our file and not a flag: a flag would override a file of the person's.
    """
    options = [str(option) for option in spec["launcher_options"]]
    own_file = any(option.replace("-", "_").startswith("__config_file") for option in options)
    return [
        *("python3", "-m", "accelerate.commands.launch"),
        *([] if own_file else ["--config_file", "%s/%s" % (folder, ACCELERATE_FILE)]),
        *("--num_processes", str(total(spec))),
        *("--num_machines", str(len(spec["members"]))),
        *("--machine_rank", str(node_rank)),
        *("--main_process_ip", spec["members"][0]["address"]),
        *("--main_process_port", str(spec["master_port"])),
        *("--rdzv_backend", "static"),
        *("--max_restarts", "0"),
        *("--gpu_ids", "all"),
        *("--deepspeed_multinode_launcher", "standard"),
        *options,
        *("--no_python", *rank_parent, "--", *program(spec)),
    ]


def _accelerate_config(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if total(spec) > 1 else "NO",
        "use_cpu": False,
        "debug": False,
        "num_machines": len(spec["members"]),
        "num_processes": total(spec),
        "gpu_ids": "all",
    }


def _deepspeed_runner(spec: Mapping[str, Any], node_rank: int, rank_parent: Argv, folder: str) -> Argv:
    """DeepSpeed's argv. Without a hostfile each node would train alone, and without an address it would use ssh.

    It sets CUDA_VISIBLE_DEVICES by itself: `--include` names the GPUs that the job has.
    """
    own = [str(option) for option in spec["launcher_options"]]
    options = [option for option in own if option != "--no_local_rank"]
    words = program(spec)
    script = next((place for place, word in enumerate(words) if word.endswith(".py")), len(words) - 1)
    behind = [] if options != own else [LOCAL_RANK_BEHIND + str(script + 1)]
    return [
        *("python3", "-m", "deepspeed.launcher.runner"),
        *("--hostfile", "%s/%s" % (folder, HOSTFILE)),
        *_included(spec),
        *("--no_ssh", "--node_rank", str(node_rank)),
        *("--master_addr", spec["members"][0]["address"]),
        *("--master_port", str(spec["master_port"])),
        *options,
        *("--no_local_rank", "--no_python", *rank_parent, *behind, "--", *words),
    ]


def _included(spec: Mapping[str, Any]) -> Argv:
    rows = [(member["name"], member.get("gpu_indices") or []) for member in spec["members"]]
    if not any(indices for _, indices in rows):
        return []
    return ["--include", "@".join("%s:%s" % (name, ",".join(map(str, indices))) for name, indices in rows)]


def _mpirun(spec: Mapping[str, Any], rank_parent: Argv, folder: str) -> Argv:
    """mpirun's argv: ranks fill one node after the other, as everywhere else; the kernel chooses their cores."""
    return [
        *("mpirun", "--hostfile", "%s/%s" % (folder, HOSTFILE)),
        *("-np", str(total(spec))),
        *("--map-by", "slot", "--bind-to", "none"),
        *spec["launcher_options"],
        *(*rank_parent, "--", *program(spec)),
    ]


def _by_jax(spec: Mapping[str, Any], folder: str) -> Argv:
    """The person's interpreter with jax_main.py before the script or module."""
    words = program(spec)
    flags = next((place for place, word in enumerate(words) if place and not _is_switch(word)), len(words))
    return [*words[:flags], "%s/%s" % (folder, JAX_FILE), *words[flags:]]


def _is_switch(word: str) -> bool:
    """Whether the word is a flag of Python's that does not say what is run."""
    return word.startswith("-") and word not in ("-m", "-c", "-")
