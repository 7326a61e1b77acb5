"""A reservation that ended before its nodes: they run on without one, and machines made beside them have none either.

Machines in a reservation that is cancelled or expires run on at the on-demand price (EC2 User Guide, "Cancel a Capacity
Reservation"), and only stopped ones can be moved to another (EC2 API, ModifyInstanceCapacityReservationAttributes; both
2026-11-22). A new one for all slots would bill beside those that run: docs/adr/0026-nodes-outlive-their-reservation.md.
"""

from __future__ import annotations

from collections.abc import Collection

from clusterctl.engine.state import RESERVATION_TYPE, StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.drift import gone_reservations
from clusterctl.lifecycle.intent import Intent, without_reservation


def forget_ended(change: Change, state: StackState) -> StackState:
    """The state without the reservations that AWS no longer holds; the person is told what that means.

    The engine asks AWS a second time, and keeps what it still finds: a list may lack what was made just now.
    """
    suspected = gone_reservations(change.clients, state)
    if not suspected:
        return state
    change.engine.refresh(suspected)
    ended = left_the_state(change.engine.export() or StackState(), suspected)
    if not ended:
        return state
    if state.instances:
        ids = ", ".join(reservation.id for reservation in state.of_type(RESERVATION_TYPE) if reservation.urn in ended)
        change.tell(
            f"the reservation {ids} has ended: running machines go on without it, at the same price. No new one is "
            "made beside them, because it would bill twice: machines made now take whatever capacity AWS has"
        )
    return state.without(ended)


def left_the_state(state: StackState, urns: Collection[str]) -> tuple[str, ...]:
    """The `urns` that are not in `state` any more."""
    kept = {resource.urn for resource in state.resources}
    return tuple(urn for urn in urns if urn not in kept)


def reserved_or_not(intent: Intent, living: StackState, *, stays: Collection[int]) -> Intent:
    """The intent, without a reservation if the machines that run on, in the slots `stays`, have none.

    Every machine is made after its reservation, so a state with machines and no reservation has lost it. So has one
    that has a reservation of another type alone: an `up` with another `instance_type` made it, and failed before it
    made the machines anew; the machines' own ends with the engine's next run. Spot machines have none to lose.
    """
    types = {instance.instance_type for instance in living.instances if instance.slot in stays}
    held = {
        reservation.inputs.get("instanceType")
        for reservation in living.of_type(RESERVATION_TYPE)
        if not reservation.is_replaced
    }
    has_lost_it = not held or (None not in types and not types & held)
    reserves_nothing = bool(stays) and has_lost_it and intent.config.market == "on-demand"
    return without_reservation(intent, reserves_nothing=reserves_nothing)
