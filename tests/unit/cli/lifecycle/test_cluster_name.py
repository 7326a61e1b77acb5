"""Another name in cluster.yaml is another cluster: no command makes it where one of the old name lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from clusterctl.engine.state import StackState, StateResource
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.lifecycle.cluster_name import refuse_other_name, refuse_shared_project
from clusterctl.lifecycle.deadline_request import DeadlineRequest
from clusterctl.lifecycle.down import DownRequest, take_down_held
from clusterctl.lifecycle.extend import ExtendRequest, move_deadline
from clusterctl.lifecycle.opening import Held
from clusterctl.lifecycle.replace import ReplaceRequest, replace_held
from clusterctl_infra.errors import StillBills, UsageError
from clusterctl_infra.outputs import Inventory, inventory_to_json

from tests.unit.cli.cloud.fake_answers import ACCOUNT, clients_of
from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, Clock, held
from tests.unit.cli.lifecycle.intent_cases import BORN
from tests.unit.cli.lifecycle.recorded_runs import ended, screen_of


@pytest.fixture
def renamed(tmp_path: Path) -> Held:
    """A cluster called train, whose file says mine by now; nobody may run its engine."""
    there = held(tmp_path, Clock(BORN), repair_s=0)
    file = there.change.stack.cluster_file
    file.write_text(file.read_text().replace("name: train", "name: mine"))
    return there


def extend_to_earlier(there: Held) -> None:
    asked = DeadlineRequest(until=DEADLINE - timedelta(hours=1))
    request = ExtendRequest(inventory=an_inventory(), asked=asked, is_agreed=True, as_json=False)
    move_deadline(request, there, now=lambda: BORN)


def replace_one(there: Held) -> None:
    request = ReplaceRequest(inventory=an_inventory(), slot=1, is_agreed=True, ready_timeout_s=None)
    replace_held(request, there)


def down_to_its_data(there: Held) -> None:
    data = StateResource(urn="u::t::users", type="aws:dynamodb/table:Table", id="users", is_protected=True)
    where = Whereabouts(
        stack=there.change.stack, rehearse=False, name="train", region="us-west-2", shown="--cluster train"
    )
    state = StackState(resources=(*there.state.resources, data))
    request = DownRequest(where=where, is_all=False, is_agreed=True)
    take_down_held(request, there.change, state, was_cut_off=False)


@pytest.mark.parametrize("command", [extend_to_earlier, replace_one, down_to_its_data])
def test_with_another_name_in_the_file_the_engine_is_not_run(renamed: Held, command: Callable[[Held], None]) -> None:
    with pytest.raises(
        UsageError, match=r"holds the cluster train, and .* says mine: .*; nothing was changed"
    ) as caught:
        command(renamed)
    assert caught.value.hint == f"${{EDITOR:-nano}} {renamed.change.stack.source}"


def test_the_name_that_it_was_born_with_and_a_stack_without_a_cluster_pass(tmp_path: Path) -> None:
    there = held(tmp_path, Clock(BORN), repair_s=0)
    refuse_other_name(there.change, there.state, "train")
    refuse_other_name(there.change, StackState(), "mine")


def test_a_copied_folder_does_not_end_the_cluster_of_the_folder_that_it_was_copied_from(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "cluster.yaml").write_text("name: train\n")
    there = held(tmp_path / "copy", Clock(BORN), repair_s=0)
    change = replace(there.change, cluster="mine")
    where = Whereabouts(stack=change.stack, rehearse=False, name="mine", region="us-west-2", shown="copy")
    known = replace(an_inventory(), stack_dir=str(tmp_path / "train"))
    file = change.home.inventory_file("train")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(inventory_to_json(known)))
    with pytest.raises(UsageError, match=r"name one project, train, so that to Pulumi both folders are one") as caught:
        take_down_held(DownRequest(where=where, is_all=True, is_agreed=True), change, there.state, was_cut_off=False)
    assert caught.value.hint == f"${{EDITOR:-nano}} {change.stack.project_file}"
    with pytest.raises(UsageError, match="name one project, train"):
        refuse_other_name(change, there.state, "mine")
    refuse_shared_project(change, there.state, "train")
    (tmp_path / "train" / "cluster.yaml").write_text("name: moved-away\n")
    refuse_shared_project(change, there.state, "mine")


def test_who_was_ended_is_told_by_the_name_that_it_had(tmp_path: Path) -> None:
    gone = replace(ended(is_well=True), changes={"delete": 9})
    there = held(tmp_path, Clock(BORN), repair_s=0, ends=[gone], aws=clients_of({}))
    change = replace(there.change, cluster="mine")
    keep(change.home.inventory_file("train"), replace(an_inventory(), stack_dir=None))
    where = Whereabouts(stack=change.stack, rehearse=False, name="mine", region="us-west-2", shown="stacks/train")
    take_down_held(DownRequest(where=where, is_all=True, is_agreed=True), change, there.state, was_cut_off=False)
    screen = screen_of(change)
    assert "train (cluster.yaml says mine): ends 4 nodes" in screen
    assert "\ntrain: gone; nothing of it is left, nothing bills\n" in screen
    assert not change.home.inventory_file("train").exists()


@pytest.mark.parametrize(("made_in", "stack_name"), [("here", "other"), ("elsewhere", "dev")], ids=["stack", "folder"])
def test_a_down_of_the_wrong_stack_does_not_advise_to_end_the_right_one(
    tmp_path: Path, made_in: str, stack_name: str
) -> None:
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
    address = {"AllocationId": "eipalloc-1", "Tags": []}
    aws = clients_of({("us-west-2", "describe_addresses", "Addresses"): [address]})
    there = held(tmp_path / "here", Clock(BORN), repair_s=0, aws=aws)
    change, known = there.change, replace(an_inventory(), account_id=ACCOUNT, stack_name=stack_name)
    where = Whereabouts(stack=change.stack, rehearse=False, name="train", region="us-west-2", shown="here")
    request = DownRequest(where=where, is_all=False, is_agreed=True)
    keep(change.home.inventory_file("train"), replace(known, stack_dir=str(tmp_path / made_in)))
    message = rf"train belongs to the stack {stack_name} of {tmp_path / made_in}: nothing was changed"
    with pytest.raises(UsageError, match=message) as caught:
        take_down_held(request, change, None, was_cut_off=False)
    assert caught.value.hint == "clusterctl down --cluster train"
    keep(change.home.inventory_file("train"), replace(known, stack_dir=str(tmp_path / "gone")))
    with pytest.raises(StillBills):
        take_down_held(request, change, None, was_cut_off=False)


def keep(file: Path, known: Inventory) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(inventory_to_json(known)))
