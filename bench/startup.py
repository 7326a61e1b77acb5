"""How long a person waits for offline commands: --help, nodes, and plan of 256 nodes."""

from __future__ import annotations

import json
import sys

from bench.timing import Timing, median_wall_s, run
from bench.workspace import CLUSTERCTL, workspace

RUNS = 15
NODES_PLANNED = 256


def table() -> list[tuple[str, ...]]:
    """Rows: what, median milliseconds, milliseconds over `python -c pass` of the same interpreter, aim."""
    with workspace() as space:
        inventory = space.folder / "home" / "inventory"
        inventory.mkdir(parents=True)
        (inventory / "other@rehearsal.json").write_text(json.dumps(an_inventory()))
        stack = space.stack("bench", nodes=NODES_PLANNED, machines="none")
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "clusterctl --help": [CLUSTERCTL, "--help"],
            "clusterctl nodes": [CLUSTERCTL, "nodes"],
            f"clusterctl plan ({NODES_PLANNED} nodes)": [CLUSTERCTL, "plan", str(stack)],
        }
        timings: dict[str, list[Timing]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, argv in commands.items():
                timings[name].append(run(argv, env=space.env, cwd=str(space.folder), timeout_s=30))
    floor = median_wall_s(timings["python -c pass"])
    aims = ("", "≤ 60 ms over", "≤ 60 ms over", "< 300 ms")
    return [
        (name, f"{median_wall_s(runs) * 1000:.0f} ms", f"+{(median_wall_s(runs) - floor) * 1000:.0f} ms", aim)
        for (name, runs), aim in zip(timings.items(), aims, strict=True)
    ]


def an_inventory() -> dict[str, object]:
    """The inventory of a cluster of four nodes, as `clusterctl nodes` reads it."""
    return {
        "version": 1,
        "name": "other",
        "cluster": "other@rehearsal",
        "cluster_id": "0" * 12,
        "run": 1,
        "rehearsal": True,
        "region": "us-west-2",
        "zone": "us-west-2b",
        "owner": "bench",
        "image_id": "ami-00000000000000000",
        "instance_type": "p5.48xlarge",
        "gpus_per_node": 8,
        "gpu_name": "H100 80GB",
        "started_at": "2026-01-01T00:00:00+00:00",
        "deadline": "2126-01-01T00:00:00+00:00",
        "deadline_reason": "runtime",
        "usd_per_hour": 220.16,
        "budget_usd": None,
        "generation": 1,
        "ssh": {"user": "ubuntu", "key_file": None, "proxy_command": None, "address": "private"},
        "nodes": [
            {
                "slot": slot,
                "rank": slot,
                "name": f"other-{slot}",
                "private_ip": f"10.0.8.{slot}",
                "host_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                "instance_id": f"i-{slot:017x}",
                "public_ip": None,
            }
            for slot in range(4)
        ],
    }
