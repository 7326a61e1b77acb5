"""The birth certificate: a NodePlan as the JSON object that the agent reads."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import UTC

from clusterctl_bootstrap.node_plan import SSH_PORT, MountPlan, NodePlan, ScriptPlan

VERSION = 1
HASH_DIGITS = 32
"""How many hex digits are kept of the SHA-256 of a script's text: 128 bits."""


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
        facts["mounts"] = [_mount_row(mount) for mount in node.mounts]
    if node.packages:
        facts["packages"] = node.packages
    if node.scripts:
        facts["scripts"] = [_script_row(script) for script in node.scripts]
    if node.host_user is not None:
        facts |= {"user": node.host_user, "is_host": True}
    if node.ssh_port != SSH_PORT:
        facts["ssh_port"] = node.ssh_port
    # YAML takes no control characters, and DEL is one that JSON leaves as it is.
    return json.dumps(facts, sort_keys=True).replace("\x7f", "\\u007f")


def _mount_row(mount: MountPlan) -> dict[str, object]:
    row = asdict(mount)
    return row if mount.types is not None else {key: value for key, value in row.items() if key != "types"}


def _script_row(script: ScriptPlan) -> tuple[str, ...]:
    """Name, when, at; followed by the hash of a script that comes over SSH."""
    row = (script.name, script.when, script.at)
    return (*row, script_hash(script.content)) if script.is_delivered else row


def script_hash(content: str) -> str:
    """The hash that the node compares with that of the script that arrives."""
    return hashlib.sha256(content.encode()).hexdigest()[:HASH_DIGITS]
