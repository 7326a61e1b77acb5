"""Fewer nodes while one of those that stay has to be made: the reservation has room for both, until the others go.

The engine ends what is too much after it has made what is missing, and makes the reservation smaller before either:
the machines that are still to go would sit in the places of those that are to come (ReservationCapacityExceeded).
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.engine.state import RESERVATION_TYPE, StackState


def places_meanwhile(state: StackState, *, nodes: int, instance_type: str, anew: Iterable[int] = ()) -> int | None:
    """How many places the reservation needs while the engine goes to `nodes`; None where no more than in the end.

    `state` holds the machines that live, `anew` the slots whose machines are replaced. For another instance type there
    will be another reservation, which none of the present machines is in. There may be two already: an `up` with
    another type that failed leaves the old one, which the engine's next run ends, beside the new one.
    """
    held = {one.inputs.get("instanceType") for one in state.of_type(RESERVATION_TYPE) if not one.is_replaced}
    if instance_type not in held:
        return None
    living = {one.slot for one in state.instances}
    surplus = {one.slot for one in state.instances if one.slot >= nodes and one.instance_type in (None, instance_type)}
    comes = set(range(nodes)) - living | set(anew)
    return nodes + len(surplus) if surplus and comes else None
