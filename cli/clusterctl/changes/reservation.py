"""A reservation that ended before its nodes: they run on without one, and so does what is made beside them.

Machines in a reservation that is cancelled or expires run on at the on-demand price (EC2 User Guide, "Cancel a Capacity
Reservation"), and only a stopped one can be told of another (EC2 API, ModifyInstanceCapacityReservationAttributes; both
2026-11-22). A new one for all slots would bill beside those that run: docs/adr/0026-nodes-outlive-their-reservation.md.
"""

from __future__ import annotations

from collections.abc import Collection

from clusterctl.changes.change import Change
from clusterctl.changes.intent import Intent, without_reservation
from clusterctl.changes.truth import gone_reservations
from clusterctl.engine.state import RESERVATION_TYPE, StackState


def forget_ended(change: Change, state: StackState) -> StackState:
    """The state without the reservations that AWS holds no more; the person is told what that means."""
    ended = gone_reservations(change.clients, state)
    if not ended:
        return state
    change.engine.refresh(ended)
    if state.instances:
        ids = ", ".join(one.id for one in state.of_type(RESERVATION_TYPE) if one.urn in ended)
        change.tell(
            f"the reservation {ids} has ended: machines that run go on without it, at the same price; no other is made "
            "beside them, since it would bill twice: what is made now takes the capacity that AWS has"
        )
    return state.without(ended)


def reserved_or_not(intent: Intent, living: StackState, *, stays: Collection[int]) -> Intent:
    """The intent for machines of which those in the slots `stays` run on: without a reservation where they have none.

    Every machine is made after its reservation: a state with machines and without one has lost it.
    """
    return without_reservation(intent, is_so=bool(stays) and living.find(RESERVATION_TYPE) is None)
