"""What AWS is ending at this moment: a machine or a reservation made meanwhile would be ended with the rest."""

from __future__ import annotations

import time

from clusterctl_infra.errors import CloudError

from clusterctl.cloud.early_end import RunningEnd, running_ends
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.text.quantities import duration

ENDING_S = 1800.0
"""Nodes have five minutes to save what is to be kept; big GPU machines, and then a NAT gateway, take minutes to end."""
REHEARSAL_POLL_S = 0.3
AWS_POLL_S = 5.0


def wait_for_ending(change: Change, state: StackState, *, again: str) -> None:
    """Returns when nothing ends the cluster any more. Raises CloudError when that takes too long.

    An end that was begun is not stopped: the nodes that began it end themselves, whatever AWS does, and the reservation
    would be left.
    """
    give_up = time.monotonic() + ENDING_S
    is_shown = False
    while ends := endings(change, state):
        if time.monotonic() > give_up:
            raise CloudError(
                f"{_named(change, ends[0])}, and has not finished after {ENDING_S / 60:.0f} minutes: what is made now "
                "would be ended, too; run the same command again later",
                code="StillEnding",
                hint=again,
            )
        if not is_shown:
            is_shown = True
            change.tell(f"waiting, {ENDING_S / 60:.0f} minutes at most: {_named(change, ends[0])}")
        time.sleep(REHEARSAL_POLL_S if change.is_rehearsal else AWS_POLL_S)


def refuse_ending(change: Change, state: StackState, *, hint: str) -> None:
    """Raises CloudError where AWS is ending the cluster: another deadline would not stop that."""
    ends = endings(change, state)
    if ends:
        raise CloudError(f"{_named(change, ends[0])}: nothing was changed", code="Ending", hint=hint)


def endings(change: Change, state: StackState) -> tuple[RunningEnd, ...]:
    """The ends of the cluster that are under way. Raises CloudError."""
    return () if state.cluster_id is None else running_ends(change.clients, state.cluster_id)


def _named(change: Change, end: RunningEnd) -> str:
    why = "" if end.reason is None else f" ({end.reason})"
    return f"{change.name} is being ended by its state machine{why}, begun {duration(end.age)} ago"
