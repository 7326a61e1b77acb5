"""A `replace` whose machine cannot be made: how often it is tried, and what is said of the slot."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.lifecycle.opening import Held
from clusterctl.lifecycle.replace import ReplaceRequest, replace_held, what_is_left
from clusterctl.lifecycle.whole_cluster import refuse_gaps
from clusterctl_infra.errors import ClusterctlError, EngineError

from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, SLOTS, Clock, held
from tests.unit.cli.lifecycle.recorded_runs import ended, no_place, runs_of

SLOT = 2
NO_ROOM = ended(is_well=False, codes=["InsufficientInstanceCapacity"])


def tried(folder: Path, *ends: RunResult, after: StackState) -> Held:
    """A cluster that is held, whose state is `after` when the engine has run."""
    return held(folder, Clock(DEADLINE), repair_s=0, ends=ends, after=after)


def replaced(there: Held, waited: list[float]) -> ClusterctlError:
    """What slot 2's replacement fails with."""
    request = ReplaceRequest(inventory=an_inventory(), slot=SLOT, is_agreed=True, ready_timeout_s=None)
    with pytest.raises(ClusterctlError) as raised:
        replace_held(request, there, now=lambda: DEADLINE - timedelta(hours=1), sleep=waited.append)
    return raised.value


def state(*, without: int | None) -> StackState:
    """Four machines and their places; the engine has ended the one `without`."""
    rows = [dataclasses.replace(row, is_ended=row.id == f"i-{without}") for row in machines(SLOTS)]
    inputs = {"instanceCount": 4, "instanceType": "p5.48xlarge"}
    return StackState(resources=(*rows, StateResource(urn="u::r", type=RESERVATION_TYPE, id="cr-1", inputs=inputs)))


def test_a_place_that_aws_does_not_count_as_free_yet_is_asked_for_again(tmp_path: Path) -> None:
    there, waited = tried(tmp_path, no_place(), no_place(), NO_ROOM, after=state(without=SLOT)), list[float]()
    assert "InsufficientInstanceCapacity" in replaced(there, waited).message
    assert waited == [15, 30]
    first, *others = [run.options for run in runs_of(there.change)]
    assert f"--replace=urn:{SLOT}" in first
    assert others == [first, first], "the engine ends no machine twice"


@pytest.mark.parametrize(
    ("without", "sentence"),
    [
        (SLOT, "Slot 2: it has no machine now, and 1 reserved place is empty and bills; the others run on."),
        (None, "Slot 2: its machine runs on; the others run on."),
    ],
)
def test_it_is_said_whether_the_slot_still_has_its_machine(tmp_path: Path, without: int | None, sentence: str) -> None:
    refused = replaced(tried(tmp_path, NO_ROOM, after=state(without=without)), [])
    assert refused.message.endswith(sentence)
    assert refused.hint is not None
    assert refused.hint.startswith("clusterctl up ")


def test_nothing_is_said_of_others_where_no_other_runs() -> None:
    alone = StackState(resources=machines([0]))
    assert what_is_left(alone, 0) == "Slot 0: its machine runs on."
    assert what_is_left(StackState(), 0) == "Slot 0: it has no machine now."


@pytest.mark.parametrize(
    ("slots", "slot", "message"),
    [
        ([0, 2, 3], 3, "slot 1 has no machine, as after a failed up"),
        ([3], 3, "slots 0, 1, 2 have no machine"),
        ([0, 2], 1, "slot 1 has no machine to replace"),
        ([], 0, "slot 0 has no machine to replace"),
    ],
)
def test_where_a_slot_is_empty_no_other_is_replaced(slots: list[int], slot: int, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        refuse_gaps(StackState(resources=machines(slots)), slot, shown="s")
    refuse_gaps(StackState(resources=machines(range(4))), 3, shown="s")
