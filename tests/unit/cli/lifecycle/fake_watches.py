"""Watches of nodes that are as a test says, without SSH."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from clusterctl.lifecycle.readiness import NodeWatch, Patience
from clusterctl.status.node_report import NodeReport

KNOWN = 3
"""The generation of the state's membership."""


@dataclass
class FakeWatches:
    """Watches whose nodes are as a test says by the time that the waiting is over."""

    seen: Sequence[NodeWatch]
    is_interrupted: bool = False
    started: list[int] = field(default_factory=list)
    waited: list[tuple[Patience, frozenset[int] | None]] = field(default_factory=list)
    memberships: list[int] = field(default_factory=list)
    """The generation of each membership that the nodes were given."""
    is_stopped: bool = False

    def start(self, slot: int, name: str) -> None:
        self.started.append(slot)

    def settle(self, membership: bytes) -> None:
        self.memberships.append(json.loads(membership)["generation"])

    def now(self) -> tuple[NodeWatch, ...]:
        return tuple(self.seen)

    def wait(
        self, patience: Patience, *, on_tick: Callable[[], None], slots: frozenset[int] | None = None
    ) -> tuple[NodeWatch, ...]:
        self.waited.append((patience, slots))
        on_tick()
        if self.is_interrupted:
            raise KeyboardInterrupt
        return self.now()

    def waiting(self, slots: frozenset[int] | None = None) -> list[str]:
        return []

    def lost(self, slot: int, why: str) -> None:
        self.note(replace(next(watch for watch in self.seen if watch.slot == slot), gone=why, is_final=True))

    def note(self, after: NodeWatch) -> None:
        self.seen = [after if watch.slot == after.slot else watch for watch in self.seen]

    def stop(self) -> None:
        self.is_stopped = True


def ready(slot: int, **changes: object) -> NodeWatch:
    facts = {
        "slot": slot,
        "name": f"train-{slot}",
        "phase": "ready",
        "report": NodeReport(phase="ready", generation=KNOWN),
        "is_final": True,
    }
    return NodeWatch(**{**facts, **changes})  # type: ignore[arg-type]
