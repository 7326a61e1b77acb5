"""Clusters of which something is missing: `extend` and `replace` change only one whose nodes are all there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from clusterctl_infra.errors import CapExceeded, ClusterctlError, EngineError
from clusterctl_infra.names import MEMBERSHIP_TYPE

from clusterctl.engine.state import StackState, StateResource
from clusterctl.text.quantities import clock, count


def refuse_half_made(state: StackState, *, cluster: str, shown: str, now: datetime) -> None:
    """Raises ClusterctlError when there is no cluster whose deadline could be moved."""
    membership = state.find(MEMBERSHIP_TYPE)
    if membership is None or not state.instances:
        raise ClusterctlError(f"{cluster} has no nodes, so it has no deadline to move", hint=f"clusterctl up {shown}")
    deadline = datetime.fromisoformat(str(membership.outputs["deadline"]))
    if deadline <= now:
        raise CapExceeded(
            f"{cluster} ended at {clock(deadline, now)}; down and then up begin another run",
            hint=f"clusterctl down {shown} && clusterctl up {shown}",
        )
    slots, members = [instance.slot for instance in state.instances], len(membership.outputs["members"])
    if slots != list(range(members)):
        raise EngineError(
            f"{cluster}: its last change left {len(slots)} of {count(members, 'node')}; first make it whole",
            hint=f"clusterctl up {shown}",
        )


def refuse_gaps(state: StackState, slot: int, *, shown: str) -> None:
    """Raises EngineError where the slot, or a lower one than the highest, has no machine, as after a failed `up`.

    The engine is told how many machines there are: with a gap, the highest slot would be beyond that, and end.
    """
    slots = [instance.slot for instance in state.instances]
    gaps = [str(number) for number in range(max(slots, default=0)) if number not in slots]
    if slot not in slots:
        raise EngineError(f"slot {slot} has no machine to replace", hint=f"clusterctl up {shown}")
    if gaps:
        empty = f"slot {gaps[0]} has" if len(gaps) == 1 else f"slots {', '.join(gaps)} have"
        raise EngineError(
            f"{empty} no machine, as after a failed up: all slots must have one before a node is replaced. "
            "Nothing was changed",
            hint=f"clusterctl up {shown}",
        )


def refuse_no_way_out(lost: Sequence[StateResource], *, cluster: str, shown: str) -> None:
    """Raises EngineError when the NAT gateway or an elastic IP is gone: a new machine would reach nothing."""
    if lost:
        raise EngineError(
            f"{cluster} has lost its way out ({_kinds(lost)}), as after an early end: a new machine would reach "
            "nothing. Nothing was changed; an up makes the cluster whole",
            hint=f"clusterctl up {shown}",
        )


def refuse_half_gone(lost: Sequence[StateResource], *, cluster: str, shown: str) -> None:
    """Raises EngineError when nodes have lost more than their machines, so that their deadline cannot be moved."""
    if lost:
        raise EngineError(
            f"{cluster} is half gone, as after an early end or an interrupted down: its state has "
            f"{count(len(lost), 'thing')} of its nodes ({_kinds(lost)}) that AWS no longer has. The deadline was "
            f"not moved; clusterctl down {shown} ends the rest, and an up makes it whole",
            hint=f"clusterctl up {shown}",
        )


def _kinds(lost: Sequence[StateResource]) -> str:
    return ", ".join(sorted({resource.type.rpartition(":")[2] for resource in lost}))
