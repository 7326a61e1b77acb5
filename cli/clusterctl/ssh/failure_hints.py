"""A node that was not reached: the sentence that says why, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from clusterctl_infra.errors import NotReached
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.failures import NodeFailure
from clusterctl.text.next_commands import replace_slot
from clusterctl.text.quantities import clock

STATUS_HELPS = ("refused", "timeout", "unreachable", "proxy", "lost")
"""The kinds of failure that `clusterctl status` may explain."""


def not_reached(
    failure: NodeFailure, inventory: Inventory, node: InventoryNode, *, now: datetime | None = None
) -> NotReached:
    """The failure as the error that ends a command on one node, exit code 255; `now` is by default the clock's time."""
    message = failure.message if node.name in failure.message else f"{node.name}: {failure.message}"
    if _status_helps(failure) and (ended := ended_at_deadline(inventory, now or datetime.now(UTC))) is not None:
        message = f"{ended} ({message})"
    return NotReached(message, hint=next_step(failure, inventory, node))


def next_step(failure: NodeFailure, inventory: Inventory, node: InventoryNode) -> str | None:
    """The command that helps; None where no clusterctl command does: a person's own machines, a command that failed."""
    if not inventory.cluster_id or failure.phase == "command":
        return None
    if failure.kind == "host-key":
        return _replace(inventory, node)
    return _status(inventory) if _status_helps(failure) else None


def ended_at_deadline(inventory: Inventory, now: datetime) -> str | None:
    """`train ended 05:01 UTC, at its deadline`; None before the deadline, and for a person's own machines."""
    if not inventory.cluster_id or not inventory.deadline:
        return None
    deadline = datetime.fromisoformat(inventory.deadline)
    return f"{inventory.name} ended {clock(deadline, now)}, at its deadline" if deadline <= now else None


def look_at(failures: Iterable[NodeFailure | None], inventory: Inventory, *, now: datetime | None = None) -> str | None:
    """The line below several nodes' results that says where to look; None where `status` would explain no failure."""
    if not inventory.cluster_id or not any(_status_helps(each) for each in failures if each is not None):
        return None
    ended = ended_at_deadline(inventory, now or datetime.now(UTC))
    return f"  {'' if ended is None else f'{ended}; '}next: {_status(inventory)}"


def failure_line(failure: NodeFailure, inventory: Inventory, node: InventoryNode) -> str:
    """The failure as a line among other nodes'; where only `replace` helps, the line names that command."""
    message = failure.message_under(node.name)
    if failure.kind != "host-key" or not inventory.cluster_id:
        return message
    return f"{message}; next: {_replace(inventory, node)}"


def _replace(inventory: Inventory, node: InventoryNode) -> str:
    """The command to replace the node; it names the cluster, as another may be the default there."""
    return replace_slot(inventory.cluster, node.slot)


def _status_helps(failure: NodeFailure) -> bool:
    return failure.phase != "command" and failure.kind in STATUS_HELPS


def _status(inventory: Inventory) -> str:
    return f"clusterctl status --cluster {inventory.cluster}"
