"""The line over the live view: how much works, what it has cost, how long it lives. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from clusterctl_infra.ledger import Ledger
from clusterctl_infra.outputs import Inventory

from clusterctl.status.account import spent_usd
from clusterctl.top.board import NodeState, silence
from clusterctl.top.frame import mean_use
from clusterctl.views.headline import ends, hardware, money, rehearsed


def title(
    inventory: Inventory, states: Mapping[int, NodeState], account: Ledger | None, *, now: datetime, now_s: float
) -> str:
    """`train · 4 × p5.48xlarge · 32 × H100 80GB · 4/4 heard · util 97 % · about $265.85 · ends 17:22 UTC (…)`."""
    heard = [state for state in states.values() if silence(state, now_s) is None]
    use = mean_use([state.sample for state in heard if state.sample is not None])
    parts = [
        inventory.name,
        hardware(inventory),
        f"{len(heard)}/{len(states)} heard",
        *([] if use is None else [f"util {use:.0f} %"]),
        money(inventory, spent_usd(inventory, account, alive=None, now=now)),
        ends(inventory, now),
    ]
    return " · ".join(parts) + rehearsed(inventory.rehearsal, inventory.gpus_per_node > 0)
