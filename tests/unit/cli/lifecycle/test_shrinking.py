"""Fewer nodes while some are dead: how many places the reservation needs until the surplus is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.lifecycle.up_runs import places_meanwhile

from tests.unit.cli.engine.state_rows import machines

TYPE = "p5.48xlarge"


def living(slots: Sequence[int]) -> StackState:
    reservation = StateResource(urn="urn:cr", type=RESERVATION_TYPE, id="cr-1", inputs={"instanceType": TYPE})
    return StackState(resources=(reservation, *machines(slots)))


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
    assert places_meanwhile(living(slots), nodes=nodes, instance_type=TYPE, anew=anew) == places


@pytest.mark.parametrize("is_first", [True, False])
def test_a_reservation_that_is_being_replaced_is_none_that_machines_are_made_in(is_first: bool) -> None:
    """An `up` with another type made the new one, and failed before the old one ended."""
    present = living((0, 2, 3, 4, 5))
    old = StateResource(
        urn="urn:cr", type=RESERVATION_TYPE, id="cr-0", inputs={"instanceType": "p4d.24xlarge"}, is_replaced=True
    )
    rows = (old, *present.resources) if is_first else (*present.resources, old)
    state = StackState(resources=rows)
    assert places_meanwhile(state, nodes=4, instance_type=TYPE) == 6
    assert places_meanwhile(state, nodes=4, instance_type="p4d.24xlarge") is None


def test_surplus_machines_of_another_type_take_no_place_of_the_reservation() -> None:
    present = living((0, 2, 3, 4, 5))
    rows = [
        replace(row, outputs={"instanceType": "p4d.24xlarge"}) if row.urn in ("urn:4", "urn:5") else row
        for row in present.resources
    ]
    assert places_meanwhile(StackState(resources=tuple(rows)), nodes=4, instance_type=TYPE) is None


def test_where_there_is_no_reservation_of_the_type_no_place_is_needed() -> None:
    state = living((0, 1, 2, 3, 4, 5))
    assert places_meanwhile(state, nodes=4, instance_type="p4d.24xlarge", anew=range(4)) is None
    unreserved = StackState(resources=machines((0, 2, 3, 4, 5)))
    assert places_meanwhile(unreserved, nodes=4, instance_type=TYPE) is None
