"""The birth certificate: a NodePlan as the JSON object that the agent reads."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC

from clusterctl_bootstrap.node_plan import NodePlan

VERSION = 1


def birth_json(node: NodePlan, *, agent: str) -> str:
    """One line of printable ASCII, keys sorted: the same text for the same plan. `agent` names the agent's code."""
    facts: dict[str, object] = {
        "version": VERSION,
        "cluster": node.cluster,
        "cluster_id": node.cluster_id,
        "run": node.run,
        "generation": node.generation,
        "slot": node.slot,
        "rank": node.rank,
        "nodes": node.nodes,
        "gpus_per_node": node.gpus_per_node,
        "slot_cidr": node.slot_cidr,
        "deadline": node.deadline.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "imds": node.imds,
        "fabric": node.fabric,
        "efa_interfaces": node.efa_interfaces,
        "env": dict(node.env),
        "agent": agent,
    }
    if node.mounts:
        facts["mounts"] = [asdict(mount) for mount in node.mounts]
    if node.packages:
        facts["packages"] = node.packages
    if node.scripts:
        facts["scripts"] = [(script.name, script.when, script.at) for script in node.scripts]
    # YAML takes no control characters, and DEL is one that JSON leaves as it is.
    return json.dumps(facts, sort_keys=True).replace("\x7f", "\\u007f")
