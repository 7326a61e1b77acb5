"""What the nodes of a cluster say of themselves, all asked at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.strict_json import NotAsExpected

from clusterctl.home import Home
from clusterctl.on_node.running_jobs import LINE, other_lines, running_jobs
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.target import names_machine
from clusterctl.ssh.way_in import uses_session_manager
from clusterctl.status.cloud_answers import Asked, Instances
from clusterctl.status.node_report import NodeReport, parse_report

ASK = f"clusterctl-node status; code=$?; {LINE}; exit $code"
ASK_S = 5.0
DIRECTLY_S, BY_SESSION_MANAGER_S = 5.0, 20.0
"""How long it takes at most to log in to a healthy node; Session Manager takes some seconds to open its session."""
USUAL_WAITS = f"{DIRECTLY_S:.0f}s, by Session Manager {BY_SESSION_MANAGER_S:.0f}s"


def usual_wait_s(inventory: Inventory) -> float:
    """How long it takes at most to log in to a healthy node of this cluster."""
    return BY_SESSION_MANAGER_S if uses_session_manager(inventory.ssh.proxy_command) else DIRECTLY_S


def nodes_with_ways(inventory: Inventory, api: Asked[Instances]) -> tuple[InventoryNode, ...]:
    """The nodes with their addresses; only AWS knows those of a half-made cluster, so its answer is waited for."""
    if not any(_lacks_way_in(inventory, node) for node in inventory.nodes):
        return inventory.nodes
    instances, _ = api.answer()
    return tuple(with_machine(node, instances) for node in inventory.nodes)


def asked_nodes(
    inventory: Inventory, nodes: tuple[InventoryNode, ...], home: Home, *, ssh_dir: Path, connect_timeout_s: float
) -> tuple[Mapping[int, NodeReport | NodeFailure], str | None]:
    """What the nodes say, or why none could be asked."""
    try:
        keys = load_login_keys(inventory, home, ssh_dir=ssh_dir)
        return ask_nodes(inventory, nodes, keys, connect_timeout_s=connect_timeout_s), None
    except NodeFailure as failure:
        return {}, failure.message


def ask_nodes(
    inventory: Inventory, nodes: tuple[InventoryNode, ...], keys: LoginKeys, *, connect_timeout_s: float
) -> Mapping[int, NodeReport | NodeFailure]:
    """What each node says of itself, or why it said nothing."""
    results = run_on_nodes(
        inventory,
        nodes,
        ASK,
        keys=keys,
        deadlines=Deadlines.within(connect_timeout_s),
        timeout_s=ASK_S,
        fan_out=max(1, len(nodes)),
    )
    return {slot: answer_of(result) for slot, result in results.items()}


def answer_of(result: NodeResult) -> NodeReport | NodeFailure:
    """The report in what the node printed; a node without an agent (yet) is a failure that says so."""
    if result.failure is not None:
        return result.failure
    text = result.stdout.decode(errors="replace")
    try:
        report = parse_report(other_lines(text))
    except NotAsExpected as e:
        return NodeFailure("protocol", f"{result.name}: its agent's status cannot be read: {e}", phase="command")
    if report is not None:
        return dataclasses.replace(report, jobs=running_jobs(text))
    errors = result.stderr.decode(errors="replace").strip().splitlines()
    why = errors[-1] if errors else f"exit {result.exit_code}"
    return NodeFailure("protocol", f"{result.name}: no status from the node's agent ({why})", phase="command")


def with_machine(node: InventoryNode, instances: Instances | None) -> InventoryNode:
    """The node with the machine and the public address that AWS knows, where the inventory has none."""
    for row in instances or ():
        if row.slot == node.slot and row.is_alive:
            return dataclasses.replace(
                node,
                instance_id=node.instance_id or row.instance_id,
                public_ip=node.public_ip or row.public_ip,
            )
    return node


def _lacks_way_in(inventory: Inventory, node: InventoryNode) -> bool:
    address = node.public_ip if inventory.ssh.address == "public" else node.private_ip
    return address is None or (node.instance_id is None and names_machine(inventory.ssh.proxy_command))
