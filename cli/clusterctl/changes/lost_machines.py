"""Nodes that never will be ready: AWS is asked now and then whether a node that does not answer has a machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from clusterctl_infra.errors import CloudError
from clusterctl_infra.outputs import Inventory

from clusterctl.changes.change import Change
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.readiness.node_report import FAILED
from clusterctl.readiness.ready import NodeWatch, ReadyWatch

AWS_EVERY_S = 15.0
"""A boot takes minutes there, and one request shows all machines of the cluster."""
REHEARSAL_EVERY_S = 1.0


class LostMachines:
    """Ends the waiting for nodes whose machines died; an API that does not answer changes nothing."""

    def __init__(self, change: Change, inventory: Inventory, watch: ReadyWatch) -> None:
        self._change = change
        self._inventory = inventory
        self._watch = watch
        self._every_s = REHEARSAL_EVERY_S if change.is_rehearsal else AWS_EVERY_S
        self._next_at = time.monotonic() + self._every_s

    def look(self) -> None:
        """Asks, when it is time to, and tells the watch."""
        if time.monotonic() >= self._next_at:
            self.look_now()

    def look_now(self) -> None:
        """Asks, and tells the watch."""
        with contextlib.suppress(CloudError):
            seen = instances_of(self._change.clients, self._inventory.cluster_id)
            lost = lost_slots(self._watch.now(), self._inventory, seen)
            for slot, why in lost.items():
                self._watch.lost(slot, why)
            if lost:  # how late an end is seen is how late `cost` may assume it
                self._change.note_machines()
        self._next_at = time.monotonic() + self._every_s


def lost_slots(watches: Iterable[NodeWatch], inventory: Inventory, seen: Iterable[InstanceState]) -> dict[int, str]:
    """Slot → AWS's word for the end of its machine; what a node that failed says of itself is worth more. Pure.

    A machine that AWS does not show may be too young for that (eventual consistency): it is waited for. One that was
    ready may have ended since: nothing tells a `reap --cluster` elsewhere of an `up` that is under way.
    """
    ended = {one.instance_id: one.told for one in seen if not one.is_alive}
    ids = {node.slot: node.instance_id or "" for node in inventory.nodes}
    return {one.slot: ended[ids[one.slot]] for one in watches if one.phase != FAILED and ids.get(one.slot) in ended}
