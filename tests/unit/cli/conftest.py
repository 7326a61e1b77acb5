"""Inventories and an output whose text can be read, for the tests of the command line."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any  # keyword arguments of a dataclass

import pytest
from clusterctl.output import Output
from clusterctl_infra.outputs import Inventory, InventoryNode, InventorySsh

MakeInventory = Callable[..., Inventory]


@dataclass
class Screen:
    """What a person would see."""

    stdout: io.BytesIO = field(default_factory=io.BytesIO)
    stderr: io.BytesIO = field(default_factory=io.BytesIO)

    @property
    def output(self) -> Output:
        return Output(stdout=self.stdout, stderr=self.stderr)

    @property
    def out(self) -> str:
        return self.stdout.getvalue().decode()

    @property
    def err(self) -> str:
        return self.stderr.getvalue().decode()


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def make_inventory() -> MakeInventory:
    """A function that makes inventories, four p5 nodes unless told otherwise."""

    def make(*, size: int = 4, ssh: InventorySsh | None = None, **changed: Any) -> Inventory:
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

    return make
