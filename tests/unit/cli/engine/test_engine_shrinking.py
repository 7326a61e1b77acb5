"""Fewer nodes while some are dead: how many places the reservation needs until the surplus is gone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusterctl.engine.shrinking import places_meanwhile
from clusterctl.engine.state import INSTANCE_TYPE, StackState, StateResource


def living(slots: Sequence[int]) -> StackState:
    rows = (
        StateResource(urn=f"urn:{slot}", type=INSTANCE_TYPE, id=f"i-{slot}", inputs={"tags": {"clusterctl:slot": slot}})
        for slot in slots
    )
    return StackState(resources=tuple(rows))


@pytest.mark.parametrize(
    ("slots", "nodes", "anew", "places"),
    [
        ((0, 1, 2, 3, 4, 5), 4, (), None),
        ((0, 2, 3, 4, 5), 4, (), 6),
        ((0, 2, 3, 4), 4, (), 5),
        ((0, 1, 2, 3, 4, 5), 4, (2,), 6),
        ((0, 1, 2), 4, (), None),
        ((0, 2, 3), 4, (), None),
        ((0, 1, 2, 3), 4, (0, 1, 2, 3), None),
        ((), 4, (), None),
    ],
    ids=[
        "all that stay are there",
        "one that stays is dead",
        "one that stays and one that goes are dead",
        "one that stays is made anew",
        "it grows",
        "nothing goes",
        "all are made anew",
        "it is new",
    ],
)
def test_surplus_machines_keep_their_places_while_others_are_made(
    slots: Sequence[int], nodes: int, anew: Sequence[int], places: int | None
) -> None:
    assert places_meanwhile(living(slots), nodes=nodes, anew=anew) == places
