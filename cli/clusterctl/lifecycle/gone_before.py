"""What AWS has no more when a `down` begins: it leaves the state first, for nobody can end it."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl.changes.change import Change
from clusterctl.changes.truth import gone_reservations, gone_spot_machines, lost_parts
from clusterctl.engine.state import RESERVATION_TYPE, StackState


def forget_gone(change: Change, state: StackState) -> None:
    """A reservation past its end date, or of a cluster that ended early, is gone: it leaves the state.

    AWS takes no cancelling of it, nor of the request of a spot machine that has ended long ago.
    """
    if lost_parts(change.clients, state):
        change.tell("what its state names is gone from AWS, as after reap: AWS is asked about all of it")
        change.engine.refresh(())
        return
    gone = {*expired_reservations(state, now=datetime.now(UTC)), *gone_reservations(change.clients, state)}
    gone |= {*gone_spot_machines(change.clients, state)}
    if gone:
        change.engine.refresh(sorted(gone))


def expired_reservations(state: StackState, *, now: datetime) -> tuple[str, ...]:
    """URNs of the capacity reservations whose end date has passed."""
    ends = ((one.urn, one.inputs.get("endDate")) for one in state.of_type(RESERVATION_TYPE))
    return tuple(urn for urn, end in ends if isinstance(end, str) and datetime.fromisoformat(end) <= now)
