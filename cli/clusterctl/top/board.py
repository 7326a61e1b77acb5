"""What is known of every node right now: written by the feeds' threads, read by the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode

from clusterctl.ssh.failures import NodeFailure
from clusterctl.top.sample import Rates, Sample, rates_between

STALE_S = 5.0
"""A node whose last sample is older is shown as silent."""


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """One node's newest sample, and what is wrong with the way to it."""

    name: str
    slot: int
    sample: Sample | None = None
    rates: Rates | None = None
    heard_at_s: float | None = None
    """This computer's monotonic clock."""
    failure: NodeFailure | None = None


class Board:
    """One state per node."""

    def __init__(self, nodes: Sequence[InventoryNode]) -> None:
        self._lock = threading.Lock()
        self._states = {node.slot: NodeState(name=node.name, slot=node.slot) for node in nodes}

    def states(self) -> Mapping[int, NodeState]:
        """A copy, by slot."""
        with self._lock:
            return dict(self._states)

    def receive(self, slot: int, sample: Sample) -> None:
        """Takes in a node's sample."""
        with self._lock:
            old = self._states[slot]
            self._states[slot] = NodeState(
                name=old.name,
                slot=slot,
                sample=sample,
                rates=rates_between(old.sample, sample),
                heard_at_s=time.monotonic(),
            )

    def lost(self, slot: int, why: NodeFailure) -> None:
        """Notes why the way to a node is gone; the node's last sample is not shown any more."""
        with self._lock:
            self._states[slot] = NodeState(name=self._states[slot].name, slot=slot, failure=why)


def silence(state: NodeState, now_s: float) -> NodeFailure | None:
    """Why there is nothing to show of a node; None when there is."""
    if state.failure is not None:
        return state.failure
    if state.sample is None or state.heard_at_s is None:
        return NodeFailure("timeout", "connecting …")
    age_s = now_s - state.heard_at_s
    return NodeFailure("lost", f"silent for {age_s:.0f} s", phase="command") if age_s > STALE_S else None
