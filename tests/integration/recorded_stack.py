"""A stack whose machines are only written down: what exists of it, by the region and by its state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # a state as JSON

from tests.integration.rehearsed import ROOT, Rehearsed

PRIVATE = {"access": {"mode": "private"}}
INSTANCE = "aws:ec2/instance:Instance"
INVENTORY = "clusterctl:index:Inventory"
PUBLIC = {"mode": "public", "ssh_from": ["203.0.113.7/32"]}
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"


def instances(cluster: Rehearsed) -> list[str]:
    return sorted(row.id for row in cluster.resources() if row.token == INSTANCE)


def made(cluster: Rehearsed) -> list[str]:
    """The instances that the state's file knows, while the engine may be writing it."""
    try:
        rows = in_state(cluster)
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return sorted(row["id"] for row in rows if row["type"] == INSTANCE and row.get("id"))


def in_state(cluster: Rehearsed) -> list[dict[str, Any]]:
    """The resources in the state's file."""
    rows: list[dict[str, Any]] = latest_state(cluster)["resources"]
    return rows


def latest_state(cluster: Rehearsed) -> dict[str, Any]:
    """What the engine wrote last, read from its file: `pulumi stack export` starts the engine to say the same."""
    state = Path(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    file = state / ".pulumi" / "stacks" / cluster.name / "dev.json"
    latest: dict[str, Any] = json.loads(file.read_text())["checkpoint"]["latest"]
    return latest


def places(cluster: Rehearsed) -> int:
    (reservation,) = (row for row in in_state(cluster) if row["type"] == RESERVATION)
    return int(reservation["inputs"]["instanceCount"])


def make_it_a_real_stack(cluster: Rehearsed) -> None:
    """Takes the stand-in out of Pulumi.yaml: plain `pulumi up` would now go to AWS."""
    plugin = ROOT / "infra" / "plugin"
    (cluster.folder / "Pulumi.yaml").write_text(
        f"name: {cluster.name}\nruntime: python\nplugins:\n  providers:\n    - name: clusterctl\n      path: {plugin}\n"
    )
