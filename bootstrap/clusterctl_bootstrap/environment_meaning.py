"""What each variable of the environment means to a reader, and which of them a person may not set.

Where the dialects were looked up, all in 2026-11:
torch: pytorch 2.13, torch/distributed/run.py (what torchrun takes) and torch.distributed `env://`.
Flow: the guide for multi-node instances (FLOW_NODE_RANK, FLOW_NUM_NODES, FLOW_MAIN_IP).
Saturn: saturncloud.io, user guide "Multi-Node Multi-GPU Parallel Training", also for the form of its names.
SkyPilot: docs "Environment Variables", sky/skylet/constants.py; NODE_IPS has one address to a line.
dstack: docs "Environment variables", runner/internal/executor/executor.go; NODES_IPS is joined by newlines.
TensorFlow: TFConfigClusterResolver (v2.21); 2222 is the port of Kubeflow's TFJob.
JAX: jax 0.10.2, jax/_src/distributed.py; 8476 is its own port on Cloud TPU (clusters/cloud_tpu_cluster.py).
Slurm: srun(1), "OUTPUT ENVIRONMENT VARIABLES"; jax/_src/clusters/slurm_cluster.py wants five of them.
"""

from __future__ import annotations

TITLES = {"torch": "torch and torchrun", "NCCL": "NCCL, gloo and tensorpipe", "clusterctl": "clusterctl"}
OTHERS = {
    "Flow": "Flow",
    "Saturn": "Saturn Cloud",
    "SkyPilot": "SkyPilot",
    "dstack": "dstack",
    "TensorFlow": "TensorFlow",
    "JAX": "JAX",
}
"""Other systems: scripts written for one know the same facts by its names."""
MEANINGS = {
    "MASTER_ADDR": "private address of slot 0, where the ranks meet",
    "MASTER_PORT": "the port they meet on",
    "NNODES": "number of nodes",
    "NODE_RANK": "this node's rank, 0 to NNODES - 1",
    "NPROC_PER_NODE": "processes on this node: one for each GPU, 1 without; another number: write it under env:",
    "WORLD_SIZE": "processes in all",
    "FLOW_NODE_RANK": "as NODE_RANK",
    "FLOW_NUM_NODES": "as NNODES",
    "FLOW_MAIN_IP": "as MASTER_ADDR",
    "SATURN_JOB_RANK": "as NODE_RANK",
    "SATURN_JOB_SCALE": "as NNODES",
    "SATURN_JOB_LEADER": "the name of rank 0; in /etc/hosts of every node",
    "SATURN_JOB_RUN": "in the name of the cluster's rank N, "
    "`${SATURN_JOB_RUN}-N.${SATURN_INTERNAL_SUBDOMAIN}.…` (below)",
    "SATURN_INTERNAL_SUBDOMAIN": "the next part of it",
    "SATURN_NAMESPACE": "`${SATURN_JOB_RUN}-N.${SATURN_INTERNAL_SUBDOMAIN}.${SATURN_NAMESPACE}.svc.cluster.local`",
    "SKYPILOT_NODE_RANK": "as NODE_RANK",
    "SKYPILOT_NODE_IPS": "private addresses, rank 0 first, one to a line",
    "SKYPILOT_NUM_NODES": "as NNODES",
    "SKYPILOT_NUM_GPUS_PER_NODE": "GPUs of this node, 0 without any",
    "DSTACK_NODE_RANK": "as NODE_RANK",
    "DSTACK_NODES_NUM": "as NNODES",
    "DSTACK_NODES_IPS": "private addresses, rank 0 first, one to a line",
    "DSTACK_MASTER_NODE_IP": "as MASTER_ADDR",
    "DSTACK_GPUS_PER_NODE": "GPUs of this node, 0 without any",
    "DSTACK_GPUS_NUM": "GPUs in all",
    "DSTACK_MPI_HOSTFILE": "for mpirun --hostfile: names in the order of the ranks, with slots",
    "TF_PORT": "the port in TF_CONFIG; another one: write TF_PORT under env:",
    "TF_CONFIG": "one worker a node in the order of the ranks, and this node's index",
    "JAX_COORDINATOR_ADDRESS": "`jax.distributed.initialize` reads it",
    "JAX_NUM_PROCESSES": "for its argument `num_processes`, one process a node: it reads no variable for it",
    "JAX_PROCESS_ID": "for its argument `process_id`: as NODE_RANK",
    "NCCL_SOCKET_IFNAME": "the interface of the default route, on a host the one that has its `private_ip`; "
    "`=` is NCCL's sign for exactly this name",
    "GLOO_SOCKET_IFNAME": "the same interface, for gloo",
    "TP_SOCKET_IFNAME": "the same interface, for tensorpipe (torch.distributed.rpc)",
    "NCCL_SOCKET_FAMILY": "on hosts that reach each other by IPv6",
    "NCCL_DEBUG": "NCCL prints errors and warnings, nothing else",
    "NCCL_NET": "with `fabric: required` on EFA: fails instead of falling back to TCP",
    "NCCL_IB_HCA": "on a host with InfiniBand: its ports by exact name, no Ethernet ones",
    "CLUSTERCTL_CLUSTER": "the cluster's name: nodes are <name>-<slot>",
    "CLUSTERCTL_ID": "the cluster's id",
    "CLUSTERCTL_SLOT": "this node's place in the cluster",
    "CLUSTERCTL_GENERATION": "number of the present membership",
    "CLUSTERCTL_FIRST_RANK": "RANK of this node's first process: the processes of all nodes with a lower rank",
    "CLUSTERCTL_HOSTFILE": "for mpirun --hostfile: names in the order of the ranks, with slots",
    "SLURM_JOB_ID": "a number made of the cluster's id",
    "SLURM_JOB_NAME": "as CLUSTERCTL_CLUSTER",
    "SLURM_JOB_NODELIST": "names in the order of the ranks, separated by commas",
    "SLURM_JOB_NUM_NODES": "as NNODES",
    "SLURM_NODELIST": "as SLURM_JOB_NODELIST",
    "SLURM_NNODES": "as NNODES",
    "SLURM_STEP_NODELIST": "as SLURM_JOB_NODELIST",
    "SLURM_NODEID": "as NODE_RANK",
    "SLURM_NTASKS": "as NNODES: one task a node",
    "SLURM_NTASKS_PER_NODE": "one task a node, which starts the others (torchrun)",
    "SLURM_PROCID": "as NODE_RANK: one task a node",
    "SLURM_LOCALID": "the only task of its node",
    "SLURM_GPUS_ON_NODE": "GPUs of this node",
}
COUNTED = frozenset(
    {
        "NNODES",
        "NODE_RANK",
        "WORLD_SIZE",
        "FLOW_NODE_RANK",
        "FLOW_NUM_NODES",
        "SATURN_JOB_RANK",
        "SATURN_JOB_SCALE",
        "SATURN_JOB_RUN",
        "SATURN_INTERNAL_SUBDOMAIN",
        "SATURN_NAMESPACE",
        "SKYPILOT_NODE_RANK",
        "SKYPILOT_NODE_IPS",
        "SKYPILOT_NUM_NODES",
        "DSTACK_NODE_RANK",
        "DSTACK_NODES_NUM",
        "DSTACK_NODES_IPS",
        "TF_CONFIG",
        "JAX_NUM_PROCESSES",
        "JAX_PROCESS_ID",
    }
)
"""Different on each node, or with each change of the cluster: one value for all nodes would be wrong on most."""
PER_PROCESS = frozenset({"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"})
"""Set by a launcher for each process it starts."""
PORTS = frozenset({"MASTER_PORT", "TF_PORT"})


def fault_of_own(name: str, value: str) -> str | None:
    """Why `env:` may not set this variable to this value; None when it may."""
    if name in COUNTED or name.startswith("CLUSTERCTL_"):
        return "clusterctl sets it, differently on each node or with each change of the cluster"
    if name in PER_PROCESS:
        return "differs from process to process; torchrun sets it in each one it starts"
    if name in PORTS and not (value.isascii() and value.isdigit() and 0 < int(value) < 65536):
        return f"{value!r} is no port: 1 to 65535"
    if name == "NPROC_PER_NODE" and not (value.isascii() and value.isdigit() and int(value) > 0):
        return f"{value!r} is no number of processes: WORLD_SIZE and the hostfile follow from it"
    code = next((ord(each) for each in value if _is_no_character(ord(each))), None)
    return (
        None if code is None else f"holds U+{code:04X}, which is no character: systemd would read none of the variables"
    )


def _is_no_character(code: int) -> bool:
    """Whether systemd refuses a whole file for this code point (systemd 252, basic/utf8.c, `unichar_is_valid`)."""
    return 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
