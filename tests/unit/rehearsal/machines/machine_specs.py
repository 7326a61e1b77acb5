"""What a machine of a rehearsal is made of."""

from __future__ import annotations

from typing import Any  # its fields

from clusterctl_rehearsal.machines.driver import MachineSpec


def machine_spec(slot: int = 0, **more: Any) -> MachineSpec:
    """The machine of this slot of a cluster called train."""
    facts = {
        "cluster": "train",
        "node": f"train-{slot}",
        "instance_id": f"i-{slot}",
        "private_ip": f"10.0.8.{slot}",
        "prefix_length": 20,
        "gateway_ip": "10.0.0.1",
        "mac": f"02:00:00:00:00:0{slot}",
        "user_data": b"",
    }
    return MachineSpec(**{**facts, **more})
