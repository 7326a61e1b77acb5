"""What an `up` that failed leaves on this computer: the stack's config, its run file, its inventory and login key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.events import Step
from clusterctl.engine.run import parallel_for
from clusterctl.engine.stack_config import config_values
from clusterctl.engine.state import RESERVATION_TYPE, StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.rollback import roll_back
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.recorded_runs import (
    BEFORE,
    ID,
    IDENTITY,
    MEANT,
    RESERVED,
    SHARED,
    ended,
    intent_of,
    runs_of,
    screen_of,
    verbs_of,
)

OWN = f"{BEFORE}  clusterctl:down: 'true'\n"
MADE = StackState(resources=(IDENTITY, *RESERVED.resources))
WITH_DATA = replace(MADE, resources=(*MADE.resources, SHARED))


def rolled_back(change: Change, *, before: StackState, before_text: str = BEFORE) -> str:
    """What is said of a failed `up` to 33 nodes, whose change is recorded as one that has begun."""
    change.begin()
    return roll_back(change, before_text=before_text, before_state=before, intent=intent_of(change), shown="s")


def is_to_be_repaired(change: Change) -> bool:
    return change.home.run_file(change.cluster).exists()


def kept_config(change: Change) -> str:
    return change.stack.config_file.read_text()


def test_a_run_that_made_nothing_leaves_the_config_as_it_was_and_nothing_to_repair(
    runner: Callable[..., Change],
) -> None:
    change = runner(state=MADE)
    assert rolled_back(change, before=MADE).startswith("Nothing was made or changed")
    assert kept_config(change) == BEFORE
    assert not is_to_be_repaired(change)
    assert verbs_of(change) == []


def test_a_new_cluster_with_data_goes_to_zero_nodes_and_its_data_is_named_with_its_bill(
    runner: Callable[..., Change],
) -> None:
    change = runner(lambda: ended(is_well=True), state=WITH_DATA)
    assert rolled_back(change, before=StackState()) == (
        "No node runs; storage and network are kept: /shared (FSx for Lustre, 4800 GiB, fs-1): $1.38/h. "
        "clusterctl down s --all ends them."
    )
    assert verbs_of(change) == ["up"], "a destroy would end the data"
    values = config_values(kept_config(change))
    assert (values["nodes"], values["down"], values["kept"]) == ("2", "true", '["/shared"]')
    assert not is_to_be_repaired(change)


def test_data_that_is_not_down_to_zero_nodes_stays_a_thing_to_repair(runner: Callable[..., Change]) -> None:
    change = runner(lambda: ended(is_well=False, stderr="no network"), state=WITH_DATA)
    assert rolled_back(change, before=StackState()) == (
        "Undoing it failed too (no network): what was made is still there, and bills: clusterctl down s ends it."
    )
    assert is_to_be_repaired(change)


@pytest.mark.parametrize(
    ("known_id", "is_forgotten"), [(ID, True), ("ffffffffffff", False)], ids=["its own", "another cluster's"]
)
def test_a_new_cluster_that_was_ended_is_forgotten_with_its_login_key_and_what_was_written_for_it(
    runner: Callable[..., Change], known_id: str, is_forgotten: bool
) -> None:
    change = runner(lambda: ended(is_well=True), state=MADE)
    inventory, keys = change.home.inventory_file("train"), change.home.keys_dir / "train"
    inventory.parent.mkdir(parents=True)
    inventory.write_text(json.dumps(inventory_to_json(an_inventory(cluster_id=known_id))))
    keys.mkdir(parents=True)
    assert rolled_back(change, before=StackState(), before_text=OWN) == (
        "Nothing was kept: no node runs, nothing bills."
    )
    assert verbs_of(change) == ["destroy"]
    assert (inventory.exists(), keys.exists()) == (not is_forgotten, not is_forgotten)
    assert kept_config(change) == BEFORE, "only what a person wrote"
    assert not is_to_be_repaired(change)


@pytest.mark.parametrize("state", [MADE, WITH_DATA], ids=["a new cluster", "one with data"])
def test_what_is_undone_is_shown_as_ended_and_not_as_made(runner: Callable[..., Change], state: StackState) -> None:
    def ending() -> RunResult:
        ended_one = Step(stage="done", op="delete", urn="u::r", type=RESERVATION_TYPE, id="cr-1")
        runs_of(change)[-1].on_event(ended_one)
        return ended(is_well=True)

    change = runner(ending, state=state)
    rolled_back(change, before=StackState())
    assert re.search(r"^ capacity +1/1 .* ended$", screen_of(change), re.MULTILINE)


def test_a_new_cluster_that_could_not_be_ended_keeps_the_config_that_it_had_and_is_repaired_next(
    runner: Callable[..., Change],
) -> None:
    change = runner(lambda: ended(is_well=False, stderr="no network"), state=MADE)
    sentence = rolled_back(change, before=StackState(), before_text=OWN)
    assert "what was made is still there, and bills: clusterctl down s ends it." in sentence
    assert kept_config(change) == OWN
    assert is_to_be_repaired(change)


@pytest.mark.parametrize("is_well", [True, False], ids=["back", "not back"])
def test_a_grown_cluster_goes_back_to_its_size_and_is_repaired_next_only_if_that_failed(
    runner: Callable[..., Change], is_well: bool
) -> None:
    before = StackState(resources=machines(range(2)))
    change = runner(lambda: ended(is_well=is_well, stderr="no network"), state=StackState(resources=machines(range(4))))
    sentence = rolled_back(change, before=before)
    assert (sentence == "Back to 2 nodes, which ran on.") is is_well
    assert verbs_of(change) == ["up"]
    assert [run.parallel for run in runs_of(change)] == [parallel_for(2, rehearsal=False)]
    assert kept_config(change) == BEFORE != MEANT
    assert is_to_be_repaired(change) is not is_well
