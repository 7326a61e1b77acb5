"""What this computer's inventory file holds beyond the plan: how to reach nodes from here, who is in which slot."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any  # JSON before it is checked

Json = Mapping[str, Any]
_LIVE = ("instance_id", "public_ip")


def inventory_for_here(
    inventory: Json,
    *,
    previous: Json | None,
    stack_dir: str,
    stack_name: str,
    proxy_command: Sequence[str] | None,
) -> dict[str, Any]:
    """The inventory of the plan with this computer's facts; instance ids of the same run are kept from `previous`."""
    ssh = dict(inventory["ssh"])
    if proxy_command is not None:
        ssh["proxy_command"] = list(proxy_command)
    local = {**inventory, "ssh": ssh, "stack_dir": stack_dir, "stack_name": stack_name}
    if previous is None or not _is_same_run(previous, inventory):
        return local
    known = {node["slot"]: node for node in previous.get("nodes", ())}
    local["nodes"] = [
        {**node, **{key: known.get(node["slot"], {}).get(key) or node.get(key) for key in _LIVE}}
        for node in inventory["nodes"]
    ]
    local["generation"] = previous.get("generation", 0)
    return local


def with_membership(inventory: Json, *, members: Sequence[Json], generation: int, deadline: str) -> dict[str, Any]:
    """The inventory with each member's instance in its slot."""
    by_slot = {member["slot"]: member for member in members}
    nodes = [
        {**node, **{key: by_slot[node["slot"]].get(key) for key in _LIVE}} if node["slot"] in by_slot else node
        for node in inventory["nodes"]
    ]
    return {**inventory, "nodes": nodes, "generation": generation, "deadline": deadline}


def rehearsal_proxy_command(name: str, *, home: Path) -> tuple[str, ...] | None:
    """argv that carries an SSH connection into a rehearsed machine's network, with `{host}` and `{port}` to fill in.

    None where the package clusterctl_rehearsal is not installed.
    """
    found = importlib.util.find_spec("clusterctl_rehearsal")
    if found is None or found.origin is None:
        return None
    connect_script = Path(found.origin).parent / "machines" / "connect.py"
    machines = home / "rehearsal" / "machines"
    return (sys.executable, "-I", "-S", str(connect_script), str(machines), name, "{host}", "{port}")


def _is_same_run(previous: Json, inventory: Json) -> bool:
    return all(previous.get(key) == inventory.get(key) for key in ("cluster_id", "run"))
