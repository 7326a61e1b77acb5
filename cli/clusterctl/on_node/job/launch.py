"""What a job's node runs: the argv of its launcher or ranks, and their environment. Pure.

torchrun's flags: static rendezvous, so that ranks follow the order of nodes and not of names or of arrival
(pytorch#191190), and no restarts of its own (`--max-restarts` counts per node, pytorch#147064); torch 2.2 to 2.15.
"""

from __future__ import annotations

import json
from typing import Any, Mapping

TORCHRUN, PLAIN = "torchrun", "plain"
LAUNCHERS = (TORCHRUN, PLAIN)
TF_PORT, JAX_PORT = 2222, 8476
SUBDOMAIN = "nodes.clusterctl.svc.cluster.local"


def member_of(spec: Mapping[str, Any], slot: int) -> int:
    """The node's rank within the job. Raises LookupError."""
    return [member["slot"] for member in spec["members"]].index(slot)


def coordinator_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The member with the lowest slot."""
    return min((dict(member) for member in spec["members"]), key=lambda member: int(member["slot"]))


def first_rank(spec: Mapping[str, Any], node_rank: int) -> int:
    """The global rank of this node's first process."""
    return sum(int(member["nproc"]) for member in spec["members"][:node_rank])


def program(spec: Mapping[str, Any]) -> list[str]:
    """One rank's own argv; a script gets the node's python3, whose output comes line by line."""
    words = [str(word) for word in spec["command"]]
    return ["python3", "-u", *words] if words[0].endswith(".py") else words


def argv(spec: Mapping[str, Any], node_rank: int, rank_parent: list[str]) -> list[list[str]]:
    """Each process that the node's supervisor starts. `rank_parent` runs a rank and says how it ended."""
    nproc = int(spec["members"][node_rank]["nproc"])
    if spec["launcher"] == PLAIN:
        return [[*rank_parent, *program(spec)] for _ in range(nproc)]
    main = spec["members"][0]
    return [
        [
            *("python3", "-m", "torch.distributed.run"),
            *("--nnodes", str(len(spec["members"]))),
            *("--node-rank", str(node_rank)),
            *("--nproc-per-node", str(nproc)),
            *("--rdzv-backend", "static"),
            *("--master-addr", main["address"]),
            *("--master-port", str(spec["master_port"])),
            *("--rdzv-id", "%s-%d" % (spec["job"], spec["attempt"])),
            *("--max-restarts", "0"),
            *spec["launcher_options"],
            *("--no-python", *rank_parent, *program(spec)),
        ]
    ]


def environment(spec: Mapping[str, Any], node_rank: int, cluster: Mapping[str, str], folder: str) -> dict[str, str]:
    """The node's variables as the job sees them: all that counts nodes or names one of them is the job's own.

    `cluster` is /etc/clusterctl/env, `folder` the job's on the node.
    """
    kept = {name: value for name, value in cluster.items() if not name.startswith(("PET_", "SLURM_"))}
    found = {
        **kept,
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": kept.get("OMP_NUM_THREADS", "1"),
        **{str(name): str(value) for name, value in spec["environment"].items()},
        **_torch(spec, node_rank),
        **_services(spec, node_rank, folder + "/hostfile"),
        **_frameworks(spec, node_rank),
    }
    return {name: found[name] for name in sorted(found)}


def owned_names(spec: Mapping[str, Any]) -> set[str]:
    """The variables that a job sets itself: a person's own value for one would break it."""
    return {*_torch(spec, 0), *_services(spec, 0, ""), *_frameworks(spec, 0), "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}


def rank_environment(spec: Mapping[str, Any], node_rank: int, local_rank: int) -> dict[str, str]:
    """What torchrun would set for one rank, for ranks that are started without it."""
    return {
        "RANK": str(first_rank(spec, node_rank) + local_rank),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(spec["members"][node_rank]["nproc"]),
    }


def hostfile(spec: Mapping[str, Any]) -> str:
    """The job's nodes for MPI."""
    return "".join("%s slots=%s\n" % (member["name"], member["nproc"]) for member in spec["members"])


def _torch(spec: Mapping[str, Any], node_rank: int) -> dict[str, str]:
    members = spec["members"]
    values = {
        "MASTER_ADDR": members[0]["address"],
        "MASTER_PORT": spec["master_port"],
        "NNODES": len(members),
        "NODE_RANK": node_rank,
        "NPROC_PER_NODE": members[node_rank]["nproc"],
        "WORLD_SIZE": sum(int(member["nproc"]) for member in members),
        "CLUSTERCTL_FIRST_RANK": first_rank(spec, node_rank),
        "CLUSTERCTL_JOB": spec["job"],
        "CLUSTERCTL_ATTEMPT": spec["attempt"],
    }
    return {name: str(value) for name, value in values.items()}


def _services(spec: Mapping[str, Any], node_rank: int, hosts: str) -> dict[str, str]:
    members = spec["members"]
    main, addresses = members[0]["address"], "\n".join(member["address"] for member in members)
    gpus = [int(member["gpus"]) for member in members]
    values = {
        "FLOW_NODE_RANK": node_rank,
        "FLOW_NUM_NODES": len(members),
        "FLOW_MAIN_IP": main,
        "SATURN_JOB_RANK": node_rank,
        "SATURN_JOB_SCALE": len(members),
        "SATURN_JOB_LEADER": "%s.%s" % (members[0]["name"], SUBDOMAIN),
        "SKYPILOT_NODE_RANK": node_rank,
        "SKYPILOT_NODE_IPS": addresses,
        "SKYPILOT_NUM_NODES": len(members),
        "SKYPILOT_NUM_GPUS_PER_NODE": gpus[node_rank],
        "DSTACK_NODE_RANK": node_rank,
        "DSTACK_NODES_NUM": len(members),
        "DSTACK_NODES_IPS": addresses,
        "DSTACK_MASTER_NODE_IP": main,
        "DSTACK_GPUS_PER_NODE": gpus[node_rank],
        "DSTACK_GPUS_NUM": sum(gpus),
        "DSTACK_MPI_HOSTFILE": hosts,
        "CLUSTERCTL_HOSTFILE": hosts,
    }
    return {name: str(value) for name, value in values.items()}


def _frameworks(spec: Mapping[str, Any], node_rank: int) -> dict[str, str]:
    members = spec["members"]
    workers = ["%s:%d" % (member["address"], TF_PORT) for member in members]
    config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": node_rank}}
    return {
        "TF_PORT": str(TF_PORT),
        "TF_CONFIG": json.dumps(config),
        "JAX_COORDINATOR_ADDRESS": "%s:%d" % (members[0]["address"], JAX_PORT),
        "JAX_NUM_PROCESSES": str(len(members)),
        "JAX_PROCESS_ID": str(node_rank),
    }
