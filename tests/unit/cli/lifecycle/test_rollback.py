"""All or nothing: which size a cluster had before an `up` that failed, and what is said of what runs on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.rollback import old_size, what_runs_on
from clusterctl_infra.names import MEMBERSHIP_TYPE

from tests.unit.cli.engine.state_rows import machines


def state(slots: Sequence[int], members: int | None) -> StackState:
    rows = [*machines(slots)]
    if members is not None:
        outputs = {"members": [{"slot": slot} for slot in range(members)]}
        rows.append(StateResource(urn="urn:members", type=MEMBERSHIP_TYPE, id="0123456789ab", outputs=outputs))
    return StackState(resources=tuple(rows))


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
    told = what_runs_on(state((0, 3), None), nodes=4, shown="stacks/train")
    assert told == (
        "slots 1, 2 missing; 2 nodes run on and bill, and so do the places of the others: "
        "clusterctl down stacks/train ends them."
    )
    assert what_runs_on(state((), 1), nodes=1, shown="s") == (
        "slot 0 missing; no node runs; what AWS still reserves for them bills: clusterctl down s ends it."
    )
    assert what_runs_on(state((0,), 1), nodes=1, shown="s") == "1 node runs on and bills: clusterctl down s ends them."
