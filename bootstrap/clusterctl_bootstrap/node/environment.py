"""The environment of a node: one table, rendered for shells and systemd, and raw for containers and sshd.

Pure and standard library only: it runs on the node, and makes docs/env.md.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Dict, List, Mapping, Tuple

MASTER_PORT = 29500
OWN = "yours"
FIXED = ("NODE_RANK", "NNODES", "WORLD_SIZE", "FLOW_NODE_RANK", "FLOW_NUM_NODES")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Variable:
    """One variable of the table; `dialect` says whose scripts expect it."""

    name: str
    value: str
    dialect: str
    meaning: str


def variables(facts: Mapping[str, Any]) -> List[Variable]:
    """The table for one node, sorted as written; a person's own `env:` comes last and wins.

    `facts` is node.json: slot, rank, nodes, gpus_per_node, slot_cidr, cluster, cluster_id, generation, env.
    """
    nodes, gpus = int(facts["nodes"]), int(facts["gpus_per_node"])
    per_node = gpus if gpus > 0 else 1
    main = address(facts["slot_cidr"], 0)
    rows = [
        Variable("MASTER_ADDR", main, "torch", "private address of slot 0, where the ranks meet"),
        Variable("MASTER_PORT", str(MASTER_PORT), "torch", "the port they meet on"),
        Variable("NNODES", str(nodes), "torch", "number of nodes"),
        Variable("NODE_RANK", str(facts["rank"]), "torch", "this node's rank, 0 to NNODES - 1"),
        Variable("NPROC_PER_NODE", str(per_node), "torch", "processes a node: one for each GPU, 1 without GPUs"),
        Variable("WORLD_SIZE", str(nodes * per_node), "torch", "processes in all"),
        Variable("FLOW_NODE_RANK", str(facts["rank"]), "Flow", "as NODE_RANK"),
        Variable("FLOW_NUM_NODES", str(nodes), "Flow", "as NNODES"),
        Variable("FLOW_MAIN_IP", main, "Flow", "as MASTER_ADDR"),
        Variable(
            "CLUSTERCTL_CLUSTER", str(facts["cluster"]), "clusterctl", "the cluster's name: nodes are <name>-<slot>"
        ),
        Variable("CLUSTERCTL_ID", str(facts["cluster_id"]), "clusterctl", "the cluster's id"),
        Variable("CLUSTERCTL_SLOT", str(facts["slot"]), "clusterctl", "this node's place in the cluster"),
        Variable("CLUSTERCTL_GENERATION", str(facts["generation"]), "clusterctl", "number of the present membership"),
    ]
    own: Dict[str, str] = {str(key): str(value) for key, value in dict(facts.get("env") or {}).items()}
    for name in own:
        if not NAME.match(name):
            raise ValueError("env: %r is no name of a variable" % name)
    kept = [row for row in rows if row.name not in own]
    return kept + [Variable(name, own[name], OWN, "from env: in cluster.yaml") for name in sorted(own)]


def is_fixed(name: str) -> bool:
    """Whether `env:` may not set this variable: nodes that count differently never meet."""
    return name in FIXED or name.startswith("CLUSTERCTL_")


def address(slot_cidr: str, slot: int) -> str:
    """The private address of a slot: the range's first address plus the slot's number."""
    return str(ip_network(slot_cidr)[slot])


def slots_by_rank(facts: Mapping[str, Any]) -> List[int]:
    """Every slot, rank 0 first. `ranks` is the rank of each slot; without it a slot's rank is its number."""
    slots = range(int(facts["nodes"]))
    return sorted(slots, key=(facts.get("ranks") or slots).__getitem__)


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


def _mark(row: Variable) -> str:
    return "# yours, from env: in cluster.yaml\n" if row.dialect == OWN else ""


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\"'\"'") + "'"
