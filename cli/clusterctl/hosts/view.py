"""What a person sees of a cluster of hosts: the plan, and that nothing ends it. Pure."""

from __future__ import annotations

from datetime import datetime

from clusterctl_infra.outputs import Inventory

from clusterctl.text.headline import advice, hardware
from clusterctl.text.quantities import usd
from clusterctl.text.table import render_table


def hosts_plan_text(inventory: Inventory, *, now: datetime) -> str:
    """The whole plan: nodes, their machines, what it costs, and that caps are advice here."""
    rows = [
        [node.name, str(node.rank), node.public_ip or "", node.private_ip, _key(node.host_public_key)]
        for node in inventory.nodes
    ]
    table = render_table(["node", "rank", "host", "private ip", "host key"], rows, right={"rank"})
    return "\n".join([*plan_lines(inventory), table, *(f"  {line}" for line in advice(inventory, now))])


def plan_lines(inventory: Inventory) -> list[str]:
    """`lab@hosts · 2 × host · 16 × H100 · $12.00/h`."""
    price = "cost unknown" if inventory.usd_per_hour is None else f"{usd(inventory.usd_per_hour)}/h"
    return [f"{inventory.cluster} · {hardware(inventory)} · {price} · nothing ends these hosts"]


def hosts_plan_json(inventory: Inventory) -> dict[str, object]:
    """What `clusterctl plan --json` prints of hosts."""
    return {
        "target": "hosts",
        "cluster": inventory.cluster,
        "gpus_per_node": inventory.gpus_per_node,
        "usd_per_hour": inventory.usd_per_hour,
        "deadline": None,
        "advisory_end": inventory.advisory_end,
        "nodes": [
            {
                "slot": node.slot,
                "rank": node.rank,
                "name": node.name,
                "address": node.public_ip,
                "private_ip": node.private_ip,
                "host_key": node.host_public_key,
            }
            for node in inventory.nodes
        ],
    }


def _key(line: str) -> str:
    """`ssh-ed25519 …x4Qk`: enough to tell two apart."""
    kind, _, text = line.partition(" ")
    return f"{kind} …{text[-8:]}"
