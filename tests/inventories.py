"""Inventories for tests: what a computer knows of a cluster, without a cluster."""

from __future__ import annotations

from typing import Any  # keyword arguments of a dataclass

from clusterctl_infra.outputs import Inventory, InventoryNode, InventorySsh


def make_inventory(*, size: int = 4, ssh: InventorySsh | None = None, **changed: Any) -> Inventory:
    """An inventory as it is after `up`: `size` p5 nodes, and `changed` fields."""
    facts: dict[str, Any] = {
        "name": "train",
        "cluster": "train",
        "cluster_id": "0123456789ab",
        "run": 1,
        "rehearsal": False,
        "region": "us-west-2",
        "zone": "us-west-2b",
        "owner": "tester",
        "image_id": "ami-00000000000000000",
        "instance_type": "p5.48xlarge",
        "gpus_per_node": 8,
        "gpu_name": "H100 80GB",
        "started_at": "2026-11-21T10:00:00+00:00",
        "deadline": "2026-11-21T22:00:00+00:00",
        "deadline_reason": "runtime",
        "usd_per_hour": 220.16,
        "budget_usd": None,
        "generation": 3,
        "ssh": ssh or InventorySsh(user="ubuntu", key_file="train/id_ed25519", proxy_command=None),
        "nodes": tuple(
            InventoryNode(
                slot=slot,
                rank=slot,
                name=f"train-{slot}",
                private_ip=f"10.0.8.{slot}",
                host_public_key=f"ssh-ed25519 QUFB{slot:04d} train-{slot}",
                instance_id=f"i-{slot:017x}",
            )
            for slot in range(size)
        ),
    }
    return Inventory(**{**facts, **changed})
