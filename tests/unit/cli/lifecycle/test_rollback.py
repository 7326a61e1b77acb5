"""All or nothing: which size a cluster had before an `up` that failed, and what is said of what runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from clusterctl.engine.state import RESERVATION_TYPE, PendingOperation, StackState, StateResource
from clusterctl.lifecycle.data import LUSTRE_TYPE
from clusterctl.lifecycle.rollback import is_as_before, nothing_made, old_size, what_runs_on
from clusterctl_infra.names import MEMBERSHIP_TYPE, MOUNT_TAG, ON_DELETE_TAG

from tests.unit.cli.engine.state_rows import machines


def state(slots: Sequence[int], members: int | None) -> StackState:
    rows = [*machines(slots)]
    if members is not None:
        outputs = {"members": [{"slot": slot} for slot in range(members)]}
        rows.append(StateResource(urn="urn:members", type=MEMBERSHIP_TYPE, id="0123456789ab", outputs=outputs))
    return StackState(resources=tuple(rows))


def reserved(cluster: StackState, *, places: int, type: str = "p5.48xlarge") -> StackState:
    inputs = {"instanceCount": places, "instanceType": type}
    reservation = StateResource(urn="urn:reservation", type=RESERVATION_TYPE, id="cr-1", inputs=inputs)
    return StackState(resources=(*cluster.resources, reservation))


def retained() -> StateResource:
    tags = {MOUNT_TAG: "/shared", ON_DELETE_TAG: "retain"}
    return StateResource(urn="urn:shared", type=LUSTRE_TYPE, id="fs-1", inputs={"tags": tags})


def component() -> StateResource:
    return StateResource(urn="urn:network", type="clusterctl:infra:Network", id="", is_custom=False)


@pytest.mark.parametrize(
    ("slots", "members", "size"),
    [
        ((), None, 0),
        ((), 0, 0),
        ((0, 1, 2, 3), 4, 4),
        ((0, 1, 2), 4, 4),
        ((0, 1), None, 2),
        ((0, 3), None, 4),
    ],
    ids=[
        "nothing was there",
        "down to zero nodes",
        "a whole cluster",
        "a slot lost by a failed replacement",
        "a first up that was cut off",
        "a first up that was cut off, with gaps",
    ],
)
def test_nodes_that_ran_before_make_the_old_size(slots: Sequence[int], members: int | None, size: int) -> None:
    assert old_size(state(slots, members)) == size


def test_what_runs_on_is_said_with_what_is_missing_and_what_it_costs() -> None:
    sentence = what_runs_on(reserved(state((0, 3), None), places=4), nodes=4, shown="stacks/train")
    assert sentence == (
        "slots 1, 2 missing; 2 nodes run on and bill, and 2 reserved places are empty and bill: "
        "clusterctl down stacks/train ends them."
    )
    assert what_runs_on(state((), 1), nodes=1, shown="s") == (
        "slot 0 missing; no node runs; what is left of it bills: clusterctl down s ends it."
    )
    assert what_runs_on(reserved(state((), 1), places=1), nodes=1, shown="s") == (
        "slot 0 missing; no node runs; what AWS still reserves for them bills: clusterctl down s ends it."
    )
    assert what_runs_on(state((0,), 1), nodes=1, shown="s") == "1 node runs on and bills: clusterctl down s ends them."


def test_a_machine_that_was_ended_and_has_no_successor_does_not_run_on() -> None:
    """Its row stays in the engine's state until the next run makes the one in its place."""
    whole = reserved(state((0, 1), 2), places=2)
    half = replace(whole, resources=tuple(replace(row, is_ended=row.id == "i-1") for row in whole.resources))
    assert old_size(half) == 2
    assert not is_as_before(half, whole)
    sentence = what_runs_on(half, nodes=2, shown="s")
    assert sentence == (
        "slot 1 missing; 1 node runs on and bills, and 1 reserved place is empty and bills: "
        "clusterctl down s ends them."
    )
    assert nothing_made(half, shown="s").startswith("Nothing was made or changed, and 1 node runs on and bills")


def test_a_reservation_of_a_type_that_no_machine_has_yet_is_empty_and_named() -> None:
    """Another instance_type for many: the first run reserves it, and the second, which makes the machines, failed."""
    sentence = what_runs_on(reserved(state((0, 1), 2), places=2, type="p5e.48xlarge"), nodes=2, shown="s")
    assert sentence == "2 nodes run on and bill, and 2 reserved places are empty and bill: clusterctl down s ends them."


@pytest.mark.parametrize(
    ("after", "is_so"),
    [
        (state((1, 0), 2), True),
        (replace(state((0, 1), 2), resources=(*state((0, 1), 2).resources, component())), True),
        (state((0, 1, 2), 2), False),
        (state((0,), 2), False),
        (state((0, 1), 3), False),
        (replace(state((0, 1), 2), pending=(PendingOperation(kind="creating", urn="u", type="t"),)), False),
    ],
    ids=["the same", "a component bills nothing", "one made", "one ended", "one changed", "one asked for"],
)
def test_a_run_that_did_nothing_is_told_from_one_that_did(after: StackState, is_so: bool) -> None:
    assert is_as_before(after, state((0, 1), 2)) is is_so


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        (StackState(), "Nothing was made: no node runs, nothing bills."),
        (
            state((0, 1), 2),
            "Nothing was made or changed, and 2 nodes run on and bill: clusterctl down s ends them.",
        ),
        (
            state((), 0),
            "Nothing was made or changed, and no node runs; what is kept bills as before: clusterctl down s ends it.",
        ),
        (
            StackState(resources=(retained(),)),
            (
                "Nothing was made or changed, and no node runs; what is kept bills as before: "
                "clusterctl down s --all ends it."
            ),
        ),
    ],
    ids=["nothing", "nodes", "no data", "data"],
)
def test_of_a_run_that_did_nothing_nothing_is_said_to_bill_anew(there: StackState, sentence: str) -> None:
    assert nothing_made(there, shown="s") == sentence
