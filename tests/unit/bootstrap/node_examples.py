"""Nodes for the tests of this folder: their plans, and a machine's files as cloud-init leaves them."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # parsed JSON

from clusterctl_bootstrap.birth import birth_json
from clusterctl_bootstrap.node_plan import NodeAccess, NodePlan
from clusterctl_infra.keys import host_key, login_key
from clusterctl_infra.plan.nodes import node_trust

SEED = bytes(range(32))
DEADLINE = datetime(2026, 12, 1, 18, 30, tzinfo=UTC)
PLAN = NodePlan(
    cluster="train",
    cluster_id="3f9c0a51b7de",
    run=1,
    generation=0,
    slot=2,
    rank=2,
    nodes=4,
    gpus_per_node=8,
    slot_cidr="10.0.8.0/21",
    deadline=DEADLINE,
    fabric="efa",
    efa_interfaces=32,
)
PUSHED: dict[str, Any] = {
    "version": 1,
    "cluster_id": PLAN.cluster_id,
    "run": 1,
    "generation": 3,
    "nodes": 6,
    "slot_cidr": PLAN.slot_cidr,
    "deadline": "2026-12-02T06:00:00Z",
    "env": {"ADDED": "yes"},
    "gpus_per_node": 8,
    "authorized_keys": ["ssh-ed25519 AAAA you@laptop"],
}


def plan(**changes: Any) -> NodePlan:
    """Slot 2 of four, with changes."""
    return dataclasses.replace(PLAN, **changes)


def access(slot: int = 2, *, authorized_keys: tuple[str, ...] | None = None) -> NodeAccess:
    """The access that goes with `slot`; by default for the cluster's derived key."""
    key = host_key(SEED, slot)
    return NodeAccess(
        user="ubuntu",
        authorized_keys=(login_key(SEED).public,) if authorized_keys is None else authorized_keys,
        host_private_key=key.private_pem,
        host_public_key=key.public,
        trust=node_trust(SEED, slot, name=f"{PLAN.cluster}-{slot}", address=f"10.0.8.{slot}"),
    )


def born(root: Path, *, with_systemd: bool = False, **changes: Any) -> Path:
    """`root` as the agent finds it at the first boot; its EFA interfaces are all there, simulated."""
    state = root / "var/lib/clusterctl"
    state.mkdir(parents=True)
    (state / "simulated-efa").write_text(f"{plan(**changes).efa_interfaces}\n")
    (state / "birth.json").write_text(birth_json(plan(**changes), agent="0123456789ab"))
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1001::/home/ubuntu:/bin/bash\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "home/ubuntu").mkdir(parents=True)
    (root / "run/clusterctl").mkdir(parents=True)
    (root / "run/clusterctl/boot-id").write_text("first-boot\n")
    if with_systemd:
        (root / "run/systemd/system").mkdir(parents=True)
        (root / "run/clusterctl/guard").write_text("a shell script")
        (root / "run/clusterctl/imds").write_text("root\n")
    return root


def routed(root: Path, interface: str = "ens32") -> Path:
    """`root` with a default route over `interface`, as /proc/net/route shows it."""
    (root / "proc/net").mkdir(parents=True)
    (root / "proc/net/route").write_text(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
        f"{interface}\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    )
    return root


def with_adapter(root: Path, name: str, driver: str, *, link_layer: str = "InfiniBand") -> None:
    """Adds an RDMA device with one port to `root`, as the kernel shows it below /sys."""
    folder = root / "sys/class/infiniband" / name
    (folder / "ports/1").mkdir(parents=True)
    (folder / "ports/1/link_layer").write_text(f"{link_layer}\n")
    (folder / "device").mkdir()
    module = root / "sys/bus/pci/drivers" / driver
    module.mkdir(parents=True, exist_ok=True)
    (folder / "device/driver").symlink_to(module)


def pushed(**changes: Any) -> str:
    """The text of a membership of generation 3, with changes."""
    return json.dumps({**PUSHED, **changes})


def status(root: Path) -> dict[str, Any]:
    """status.json of a machine."""
    parsed: dict[str, Any] = json.loads((root / "etc/clusterctl/status.json").read_text())
    return parsed
