"""The birth certificate: a NodePlan as the JSON object that the agent reads."""

from __future__ import annotations

import json
from datetime import UTC

from clusterctl_bootstrap.node_plan import NodePlan

VERSION = 1


def birth_json(node: NodePlan) -> str:
    """One line of JSON, keys sorted: the same text for the same plan."""
    facts = {
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
    }
    return json.dumps(facts, sort_keys=True, ensure_ascii=False)
