"""The table of `clusterctl nodes`, from the inventory alone."""

from __future__ import annotations

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.text.headline import hardware, rehearsed
from clusterctl.text.table import render_table

NONE = "–"


def nodes_text(inventory: Inventory) -> str:
    """The cluster's line and its table; columns that no node fills are left out."""
    place = "hosts" if inventory.is_hosts else inventory.zone
    title = f"{inventory.name} · {place} · {hardware(inventory)}"
    title += rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)
    if not inventory.nodes or inventory.run_nodes_down:
        return f"{title}\n  no nodes now: the cluster is down"
    has_public = any(node.public_ip for node in inventory.nodes)
    header = ["node", "rank", "private ip", *(["public ip"] if has_public else []), "instance"]
    if inventory.is_hosts:
        header, has_public = ["node", "rank", "private ip", "host"], False
    rows = [_row(node, has_public) for node in inventory.nodes]
    return f"{title}\n\n{render_table(header, rows, right={'rank'})}"


def nodes_json(inventory: Inventory) -> dict[str, object]:
    """What `clusterctl nodes --json` prints."""
    return {
        "cluster": inventory.cluster,
        "cluster_id": inventory.cluster_id,
        "rehearsal": inventory.rehearsal,
        "generation": inventory.generation,
        "deadline": None if inventory.is_hosts else inventory.deadline,
        "down": inventory.run_nodes_down,
        "nodes": [
            {
                "slot": node.slot,
                "rank": node.rank,
                "name": node.name,
                "private_ip": node.private_ip,
                "public_ip": node.public_ip,
                "instance_id": node.instance_id,
            }
            for node in inventory.nodes
        ],
    }


def _row(node: InventoryNode, has_public: bool) -> list[str]:
    public = [node.public_ip or NONE] if has_public else []
    return [node.name, str(node.rank), node.private_ip, *public, node.instance_id or node.public_ip or NONE]
