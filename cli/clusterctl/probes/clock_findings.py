"""Clocks that are off: how exactly that is known depends on how fast a node answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from clusterctl.probes.finding import Finding
from clusterctl.probes.readings import NodeAnswer

MOST_OFF_S = 0.5
MOST_SERVICE_OFF_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Offset:
    """The bounds of how far a node's clock is ahead of this computer's; negative: behind it."""

    least_s: float
    most_s: float

    @property
    def certain_s(self) -> float:
        """How far the clock is off at least; 0 when it may be right."""
        return self.least_s if self.least_s > 0 else min(0.0, self.most_s)


def offset_of(answer: NodeAnswer) -> Offset | None:
    """The bounds for a node's clock, read after the node was asked and before it answered; None without a reading."""
    clock = answer.readings.clock
    if clock is None:
        return None
    return Offset(least_s=clock.shown_s - answer.answered_at_s, most_s=clock.shown_s - answer.asked_at_s)


def own_offset_s(answers: Sequence[NodeAnswer]) -> float:
    """How far the nodes' clocks are ahead of this computer's, by their median; 0 for a single node, which proves
    nothing.
    """
    certain = [offset.certain_s for offset in map(offset_of, answers) if offset is not None]
    return median(certain) if len(certain) > 1 else 0.0


def clock_findings(answer: NodeAnswer, *, own_s: float) -> list[Finding]:
    """All findings about a node's clock; `own_s`: how far most nodes' clocks are ahead of this computer's."""
    clock, offset = answer.readings.clock, offset_of(answer)
    if clock is None or offset is None:
        return []
    found = []
    shifted = Offset(least_s=offset.least_s - own_s, most_s=offset.most_s - own_s)
    if abs(shifted.certain_s) > MOST_OFF_S:
        found.append(Finding(level="fault", kind="the clock is off", detail=f"by {shifted.certain_s:+.1f} s at least"))
    if clock.is_synchronised is False:
        found.append(Finding(level="remark", kind="the clock is not synchronised"))
    if clock.service_offset_s is not None and abs(clock.service_offset_s) > MOST_SERVICE_OFF_S:
        detail = f"{clock.service_offset_s * 1000:+.0f} ms from its time servers"
        found.append(Finding(level="remark", kind="the clock drifts", detail=detail))
    return found
