"""What `clusterctl status` says of an event that AWS plans for a node's machine. Pure."""

from __future__ import annotations

from datetime import datetime

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.cloud.scheduled_events import ScheduledEvent
from clusterctl.text.next_commands import replace_slot
from clusterctl.text.quantities import clock

_WORDS = {
    "instance-retirement": "AWS retires it",
    "instance-stop": "AWS stops it",
    "instance-reboot": "AWS reboots it",
    "system-reboot": "AWS reboots its host",
    "system-maintenance": "AWS maintains its host, which may cut it off or reboot it,",
}
"""By code (EC2 user guide, "Scheduled events for your instances"; 2026-11-26)."""
_ENDS = ("instance-retirement", "instance-stop")
"""After these events the slot has no machine, or a stopped one, and needs another; after a reboot it does not."""


def event_words(event: ScheduledEvent, inventory: Inventory, node: InventoryNode, now: datetime) -> str:
    """`AWS retires it at 2026-12-01 10:00 UTC; next: clusterctl replace --node 2 --cluster train`."""
    what = _WORDS.get(event.code, f"AWS plans an event ({event.code})")
    at = event.not_before
    when = "any time now" if at is None or at <= now else f"at {clock(at, now)}"
    if at is not None and at >= datetime.fromisoformat(inventory.deadline):
        return f"{what} {when}, after the cluster's deadline"
    helps = f"; next: {replace_slot(inventory.cluster, node.slot)}" if event.code in _ENDS else ""
    return f"{what} {when}{helps}"


def event_json(event: ScheduledEvent) -> dict[str, str | None]:
    """The event as `clusterctl status --json` shows it."""
    return {
        "id": event.event_id,
        "code": event.code,
        "description": event.description,
        "not_before": _plain(event.not_before),
        "not_after": _plain(event.not_after),
        "start_deadline": _plain(event.start_deadline),
    }


def _plain(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
