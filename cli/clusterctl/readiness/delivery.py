"""The membership handed to nodes that run, all at a time, and which of them did not take it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.readiness.membership import APPLY, APPLY_S, refusal_in
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import load_login_keys
from clusterctl.ssh.many.fan_out import run_on_nodes
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.way_in import uses_session_manager

CONNECT_S, BY_SESSION_MANAGER_S = 10.0, 20.0
"""A node that is asked in a hurry has to be one that answers."""


def deliver(inventory: Inventory, nodes: Sequence[InventoryNode], content: bytes, *, home: Home) -> Mapping[int, str]:
    """Slot → why the node has not got the membership; empty when all have it."""
    wait_s = BY_SESSION_MANAGER_S if uses_session_manager(inventory.ssh.proxy_command) else CONNECT_S
    try:
        keys = load_login_keys(inventory, home, ssh_dir=Path.home() / ".ssh")
    except NodeFailure as failure:
        return {node.slot: failure.message for node in nodes}
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        results = run_on_nodes(
            inventory,
            nodes,
            APPLY,
            keys=keys,
            deadlines=Deadlines.within(wait_s),
            timeout_s=APPLY_S,
            stdin=file,
            fan_out=max(1, len(nodes)),
        )
    return {slot: _why(result) for slot, result in sorted(results.items()) if not result.is_ok}


def _why(result: NodeResult) -> str:
    if result.failure is not None:
        return result.failure.told_under(result.name)
    return refusal_in(result.stdout, result.stderr, result.exit_code or 0)
