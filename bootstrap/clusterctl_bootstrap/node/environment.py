"""The environment of a node: one table, rendered for shells and systemd, and raw for containers and sshd.

Pure and standard library only: it runs on the node, and makes docs/env.md (its sentences, and where each dialect was
looked up, are in environment_meaning.py).
"""

import json
import re
from ipaddress import ip_network
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

OWN = "yours"
TF_PORT = 2222
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
HOSTFILE = "/etc/clusterctl/hostfile"
DOMAIN = "nodes.clusterctl.svc.cluster.local"


class Variable(NamedTuple):
    """One variable of the table; `dialect` says whose scripts expect it."""

    name: str
    value: str
    dialect: str
    is_instead: bool = False
    """Whether it is a person's and replaces one of ours."""


def variables(facts: Mapping[str, Any], computed: Sequence[Variable] = ()) -> List[Variable]:
    """The table for one node, as written: ours, what was `computed` on the machine, a person's own `env:`, which wins.

    `facts` is node.json: slot, rank, ranks, nodes, gpus_per_node (or gpus: of each slot), slot_cidr, cluster,
    cluster_id, generation, env.
    """
    own = {str(key): str(value) for key, value in dict(facts.get("env") or {}).items()}
    for name in own:
        if not NAME.match(name):
            raise ValueError("env: %r is not a valid variable name" % name)
    ours = [*_ours(facts, own), *computed]
    names = {row.name for row in ours}
    kept = [row for row in ours if row.name not in own]
    return kept + [Variable(name, own[name], OWN, name in names) for name in sorted(own)]


def slurm_variables(facts: Mapping[str, Any]) -> List[Variable]:
    """What a Slurm step of one task a node would set: for scripts that ask for it, in a file of its own."""
    nodes, rank, cluster = facts["nodes"], facts["rank"], facts["cluster"]
    names = ",".join("%s-%d" % (cluster, slot) for slot in slots_by_rank(facts))
    step: Dict[str, object] = {
        "SLURM_JOB_ID": int(facts["cluster_id"][-7:], 16),
        "SLURM_JOB_NAME": cluster,
        "SLURM_JOB_NODELIST": names,
        "SLURM_NODELIST": names,
        "SLURM_STEP_NODELIST": names,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_NNODES": nodes,
        "SLURM_NTASKS": nodes,
        "SLURM_NTASKS_PER_NODE": 1,
        "SLURM_NODEID": rank,
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": 0,
        "SLURM_GPUS_ON_NODE": gpus_by_slot(facts)[facts["slot"]],
    }
    return [Variable(name, str(value), "Slurm") for name, value in step.items()]


def slots_by_rank(facts: Mapping[str, Any]) -> List[int]:
    """Every slot, rank 0 first. `ranks` is the rank of each slot; without it a slot's rank is its number."""
    slots = range(int(facts["nodes"]))
    return sorted(slots, key=(facts.get("ranks") or slots).__getitem__)


def gpus_by_slot(facts: Mapping[str, Any]) -> List[int]:
    """GPUs of each slot's node; hosts may differ in them, so the first rank on a node need not be rank times 8."""
    return facts.get("gpus") or [facts["gpus_per_node"]] * facts["nodes"]


def processes(facts: Mapping[str, Any]) -> List[int]:
    """Processes on each slot's node: what `env:` says, else one for each GPU, 1 without GPUs."""
    asked = (facts.get("env") or {}).get("NPROC_PER_NODE")
    return [int(asked or gpus or 1) for gpus in gpus_by_slot(facts)]


def address(slot_cidr: str, slot: int) -> str:
    """The private address of a slot: the range's first address plus the slot's number.

    Hosts that somebody else numbered have their addresses listed instead, with commas between.
    """
    return slot_cidr.split(",")[slot] if "," in slot_cidr else str(ip_network(slot_cidr)[slot])


def joined(address: str, port: object) -> str:
    """`10.1.0.5:8476`, `[fd00::5]:8476`."""
    return ("[%s]:%s" if ":" in address else "%s:%s") % (address, port)


def render_env(rows: List[Variable]) -> str:
    """`/etc/clusterctl/env`: what sh and systemd's EnvironmentFile both read.

    Single quotes; a quote inside is written '"'"', since systemd misreads the usual '\\'' (systemd 252, 2026-11).
    """
    return "".join("%s%s=%s\n" % (_mark(row), row.name, _quoted(row.value)) for row in rows)


def render_env_list(rows: List[Variable]) -> Tuple[str, List[str]]:
    """Raw `KEY=value` lines for `docker --env-file` and sshd, and the names left out as their value has a newline."""
    kept = [row for row in rows if "\n" not in row.value]
    left_out = [row.name for row in rows if "\n" in row.value]
    return "".join("%s%s=%s\n" % (_mark(row), row.name, row.value) for row in kept), left_out


def _ours(facts: Mapping[str, Any], own: Mapping[str, str]) -> List[Variable]:
    addresses = [address(facts["slot_cidr"], slot) for slot in slots_by_rank(facts)]
    table: Dict[str, Dict[str, object]] = {
        **_launchers(facts, addresses[0]),
        **_services(facts, addresses),
        **_frameworks(facts, addresses, own),
    }
    return [Variable(name, str(value), dialect) for dialect, row in table.items() for name, value in row.items()]


def _launchers(facts: Mapping[str, Any], main: str) -> Dict[str, Dict[str, object]]:
    nodes, rank, by_slot = facts["nodes"], facts["rank"], processes(facts)
    counts = [by_slot[slot] for slot in slots_by_rank(facts)]
    return {
        "torch": {
            "MASTER_ADDR": main,
            "MASTER_PORT": 29500,
            "NNODES": nodes,
            "NODE_RANK": rank,
            "NPROC_PER_NODE": counts[rank],
            "WORLD_SIZE": sum(counts),
        },
        "Flow": {"FLOW_NODE_RANK": rank, "FLOW_NUM_NODES": nodes, "FLOW_MAIN_IP": main},
        "clusterctl": {
            "CLUSTERCTL_CLUSTER": facts["cluster"],
            "CLUSTERCTL_ID": facts["cluster_id"],
            "CLUSTERCTL_SLOT": facts["slot"],
            "CLUSTERCTL_GENERATION": facts["generation"],
            "CLUSTERCTL_FIRST_RANK": sum(counts[:rank]),
            "CLUSTERCTL_HOSTFILE": HOSTFILE,
        },
    }


def _services(facts: Mapping[str, Any], addresses: List[str]) -> Dict[str, Dict[str, object]]:
    nodes, rank, gpus, lines = facts["nodes"], facts["rank"], gpus_by_slot(facts), "\n".join(addresses)
    subdomain, namespace = DOMAIN.split(".")[:2]
    return {
        "Saturn": {
            "SATURN_JOB_RANK": rank,
            "SATURN_JOB_SCALE": nodes,
            "SATURN_JOB_LEADER": "%s-0.%s" % (facts["cluster"], DOMAIN),
            "SATURN_JOB_RUN": facts["cluster"],
            "SATURN_INTERNAL_SUBDOMAIN": subdomain,
            "SATURN_NAMESPACE": namespace,
        },
        "SkyPilot": {
            "SKYPILOT_NODE_RANK": rank,
            "SKYPILOT_NODE_IPS": lines,
            "SKYPILOT_NUM_NODES": nodes,
            "SKYPILOT_NUM_GPUS_PER_NODE": gpus[facts["slot"]],
        },
        "dstack": {
            "DSTACK_NODE_RANK": rank,
            "DSTACK_NODES_NUM": nodes,
            "DSTACK_NODES_IPS": lines,
            "DSTACK_MASTER_NODE_IP": addresses[0],
            "DSTACK_GPUS_PER_NODE": gpus[facts["slot"]],
            "DSTACK_GPUS_NUM": sum(gpus),
            "DSTACK_MPI_HOSTFILE": HOSTFILE,
        },
    }


def _frameworks(facts: Mapping[str, Any], addresses: List[str], own: Mapping[str, str]) -> Dict[str, Dict[str, object]]:
    nodes, rank = facts["nodes"], facts["rank"]
    workers = [joined(each, own.get("TF_PORT", TF_PORT)) for each in addresses]
    config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
    return {
        "TensorFlow": {"TF_PORT": TF_PORT, "TF_CONFIG": json.dumps(config)},
        "JAX": {
            "JAX_COORDINATOR_ADDRESS": joined(addresses[0], 8476),
            "JAX_NUM_PROCESSES": nodes,
            "JAX_PROCESS_ID": rank,
        },
    }


def _mark(row: Variable) -> str:
    if row.dialect != OWN:
        return ""
    return "# yours, from env: in cluster.yaml%s\n" % (", instead of ours" if row.is_instead else "")


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\"'\"'") + "'"
