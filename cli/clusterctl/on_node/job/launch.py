"""The environment of a job's ranks: all that counts nodes, or names one, is the job's own. Pure."""

from __future__ import annotations

import json
from typing import Any, Mapping


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
    """One rank's own argv; a script gets `python3 -u`: its output comes line by line."""
    words = [str(word) for word in spec["command"]]
    return ["python3", "-u", *words] if words[0].endswith(".py") else words


def ports(spec: Mapping[str, Any]) -> list[int]:
    """All ports that the job has on each of its nodes."""
    return [spec["master_port"], spec["channel_port"], spec["jax_port"], *spec["tf_ports"]]


def environment(spec: Mapping[str, Any], node_rank: int, cluster: Mapping[str, str], folder: str) -> dict[str, str]:
    """The node's variables as the job sees them.

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
        **_gpus(spec, node_rank),
    }
    return {name: found[name] for name in sorted(found)}


def owned_names(spec: Mapping[str, Any]) -> set[str]:
    """The variables that a job sets itself: a person's own value for one would break it."""
    per_rank = {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "JAX_LOCAL_DEVICE_IDS"}
    return {*_torch(spec, 0), *_services(spec, 0, ""), *_frameworks(spec, 0), *_gpus(spec, 0), *per_rank}


def rank_environment(spec: Mapping[str, Any], node_rank: int, local_rank: int) -> dict[str, str]:
    """Variables of a rank that no launcher starts: torchrun's, and which process of TensorFlow's or JAX's it is."""
    member = spec["members"][node_rank]
    nproc, rank = int(member["nproc"]), first_rank(spec, node_rank) + local_rank
    devices = [local_rank] if nproc > 1 else range(max(1, int(member["gpus"])))
    found = {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(nproc),
        "TF_PORT": str(spec["tf_ports"][local_rank]),
        "JAX_NUM_PROCESSES": str(sum(int(each["nproc"]) for each in spec["members"])),
        "JAX_PROCESS_ID": str(rank),
        "JAX_LOCAL_DEVICE_IDS": ",".join(map(str, devices)),
    }
    workers = [
        joined(each["address"], spec["tf_ports"][local])
        for each in spec["members"]
        for local in range(int(each["nproc"]))
    ]
    return {**found, "TF_CONFIG": _tf_config(workers, rank)}


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
        "SATURN_JOB_LEADER": spec.get("leader", main),  # a spec of an older clusterctl does not have it
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
    workers = [joined(member["address"], spec["tf_ports"][0]) for member in members]
    return {
        "TF_PORT": str(spec["tf_ports"][0]),
        "TF_CONFIG": _tf_config(workers, node_rank),
        "JAX_COORDINATOR_ADDRESS": joined(members[0]["address"], spec["jax_port"]),
        "JAX_NUM_PROCESSES": str(len(members)),
        "JAX_PROCESS_ID": str(node_rank),
    }


def joined(address: str, port: int) -> str:
    """`10.1.0.5:2222`, `[fd00::5]:2222`."""
    return ("[%s]:%d" if ":" in address else "%s:%d") % (address, port)


def _tf_config(workers: list[str], index: int) -> str:
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})


def _gpus(spec: Mapping[str, Any], node_rank: int) -> dict[str, str]:
    """Which GPUs of its node the job has; nothing where it has all of them."""
    indices = spec["members"][node_rank].get("gpu_indices")
    return {} if indices is None else {"CUDA_VISIBLE_DEVICES": ",".join(map(str, indices))}
