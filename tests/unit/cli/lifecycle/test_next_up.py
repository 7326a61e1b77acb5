"""`plan` tells what the next `up` does to a cluster that is there, from the state alone."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any  # `Any`: keyword arguments of an inventory

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import PLACEMENT_GROUP_TYPE, StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.intent import for_up, plan_of, read_intent
from clusterctl.lifecycle.next_up import NextUp, cluster_of, next_up_json, next_up_rows
from clusterctl.lifecycle.next_up_by_state import foresee
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER
from tests.unit.cli.lifecycle.intent_cases import state_of as born_state
from tests.unit.cli.lifecycle.test_preview import state_of as state_after

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)


def living(stack: Stack) -> StackState:
    """The state after an `up` of the file as it is."""
    identity = born_state()
    made = plan_of(for_up(read_intent(stack, "", nodes=None), identity, {}), identity, now=BORN)
    machines = state_after(made).resources[1:]
    group = StateResource(urn="u::clusterctl:infra:Capacity$group", type=PLACEMENT_GROUP_TYPE, id="g")
    return StackState(resources=(*identity.resources, group, *machines))


def seen(stack: Stack, state: StackState, *, minutes: int = 0, config: str = "") -> NextUp:
    intent = for_up(read_intent(stack, config, nodes=None), state, {})
    return foresee(stack, intent, state, rehearse=False, now=BORN + timedelta(minutes=minutes))


def test_nothing_happens_to_a_cluster_whose_file_is_as_it_was(stack: Stack) -> None:
    found = seen(stack, living(stack))
    assert next_up_rows(found, now=BORN) == [("nothing", "no node is made, ended or replaced")]


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ("nodes: 4", "nodes: 6", [("makes", "train-[4-5]")]),
        ("nodes: 4", "nodes: 3", [("ends", "train-3: the data on their disks is lost")]),
        (
            "p5.48xlarge",
            "p5e.48xlarge",
            [
                (
                    "replace",
                    "train-[0-3]: replaced, the data on their disks is lost: instance type p5.48xlarge → p5e.48xlarge",
                )
            ],
        ),
        (
            "access: {mode: private}",
            "access: {mode: private}\nimds: users",
            [("later", "train-[0-3]: imds: takes effect when a node is replaced")],
        ),
    ],
)
def test_a_change_of_the_file_is_foretold(stack: Stack, before: str, after: str, rows: list[tuple[str, str]]) -> None:
    state = living(stack)
    stack.cluster_file.write_text(CLUSTER.replace(before, after))
    assert next_up_rows(seen(stack, state), now=BORN) == rows


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("name: train", "name: other", "a new name means a new cluster"),
        ("region: us-west-2", "region: us-east-1", "this cluster is in us-west-2b"),
        ("caps: {runtime: 2h}", "caps: {runtime: 1m}", "its run time was over"),
        ("access: {mode: private}", "access: {mode: private}\ncapacity: spot", "capacity"),
    ],
)
def test_what_up_refuses_is_said_before(stack: Stack, before: str, after: str, reason: str) -> None:
    state = living(stack)
    stack.cluster_file.write_text(CLUSTER.replace(before, after))
    found = seen(stack, state, minutes=5)
    assert any(reason in line for line in found.refused), found.refused
    assert next_up_json(found)["refused"] == list(found.refused)


def test_an_end_that_extend_moved_is_told(stack: Stack) -> None:
    until = BORN + timedelta(hours=5)
    found = seen(stack, living(stack), config=f"config:\n  clusterctl:until: '{until.isoformat()}'\n")
    line = "moved to 15:00 UTC by extend; caps.runtime counts from the next run on"
    assert next_up_rows(found, now=BORN) == [("deadline", line)]
    assert next_up_json(found)["extended_until"] == until.isoformat()


@pytest.mark.parametrize(
    ("changed", "is_it"),
    [({}, True), ({"name": "older"}, True), ({"stack_name": "other"}, False), ({"stack_dir": "/elsewhere"}, False)],
)
def test_the_cluster_of_a_folder_is_known_whatever_its_file_says(
    stack: Stack, own_home: Path, make_inventory: MakeInventory, changed: dict[str, Any], is_it: bool
) -> None:
    home = Home(path=own_home)
    home.inventory_dir.mkdir(parents=True)
    known = make_inventory(**{"stack_dir": str(stack.directory), **changed})
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(known)))
    assert (cluster_of(stack, home=home, is_rehearsal=False) is not None) == is_it
    assert cluster_of(stack, home=home, is_rehearsal=True) is None
    assert cluster_of(dataclasses.replace(stack, name="x"), home=home, is_rehearsal=False) is None
