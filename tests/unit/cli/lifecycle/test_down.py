"""What a `down` says that it ends, what it does, and what it looks for afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any  # rows of AWS

import pytest
from clusterctl.engine.stack_config import config_values
from clusterctl.engine.state import StackState
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.down import (
    Down,
    DownRequest,
    end_all,
    end_nodes,
    take_down,
    take_down_held,
)
from clusterctl.lifecycle.down_preview import DownEffect, effect_of_down, ending_line
from clusterctl_infra.errors import StillBills
from clusterctl_infra.names import ID_TAG
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cloud.fake_answers import ACCOUNT, clients_of
from tests.unit.cli.conftest import Screen
from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.recorded_runs import ID, IDENTITY, MEANT, SHARED, ended, screen_of, verbs_of

PLAIN = StackState(resources=(IDENTITY, *machines(range(2))))
WITH_DATA = StackState(resources=(*PLAIN.resources, SHARED))
TAGS = [{"Key": ID_TAG, "Value": ID}]
STRAY: dict[tuple[str, str, str], list[dict[str, Any]]] = {
    ("us-west-2", "describe_file_systems", "FileSystems"): [{"FileSystemId": "fs-9", "Tags": TAGS}]
}


def request_of(change: Change, *, is_all: bool = False) -> DownRequest:
    where = Whereabouts(stack=change.stack, rehearse=False, name="train", region="us-west-2", shown="s")
    return DownRequest(where=where, is_all=is_all, is_agreed=True)


def down_of(change: Change, *, is_all: bool = False) -> Down:
    """A `down` that is recorded as one that has begun."""
    change.begin()
    request = request_of(change, is_all=is_all)
    return Down(request=request, change=change, was_cut_off=False)


def is_to_be_repaired(change: Change) -> bool:
    return change.home.run_file(change.cluster).exists()


def test_a_file_system_that_no_state_knows_keeps_the_network_and_is_named_with_its_bill(
    runner: Callable[..., Change],
) -> None:
    change = runner(state=PLAIN, aws=clients_of(STRAY))
    assert effect_of_down(change, PLAIN, is_all=False).keeps_data
    assert "fs-9 is in no Pulumi state and holds data: it stays and bills " in screen_of(change)


@pytest.mark.parametrize(
    ("state", "is_all", "keeps_data"), [(PLAIN, False, False), (WITH_DATA, False, True), (WITH_DATA, True, False)]
)
def test_data_of_the_state_stays_unless_all_is_to_go(
    runner: Callable[..., Change], state: StackState, is_all: bool, keeps_data: bool
) -> None:
    change = runner(state=state)
    effect = effect_of_down(change, state, is_all=is_all)
    assert (effect.keeps_data, [stored.id for stored in effect.kept]) == (keeps_data, ["fs-1"] if keeps_data else [])


@pytest.mark.parametrize(
    ("keeps_data", "is_kept", "line"),
    [
        (True, True, "train: ends 2 nodes; network and storage are kept"),
        (
            True,
            False,
            "train: ends 2 nodes and /shared (FSx for Lustre, 4800 GiB, fs-1); network and storage are kept",
        ),
        (
            False,
            False,
            (
                "train: ends 2 nodes and everything else of it, 4 resources, and what is in "
                "/shared (FSx for Lustre, 4800 GiB, fs-1)"
            ),
        ),
    ],
    ids=["it is kept", "another one is kept", "nothing is kept"],
)
def test_the_question_names_the_data_that_would_be_lost(
    runner: Callable[..., Change], keeps_data: bool, is_kept: bool, line: str
) -> None:
    change = runner(state=WITH_DATA)
    kept = effect_of_down(change, WITH_DATA, is_all=False).kept if is_kept else ()
    assert ending_line(change, DownEffect(state=WITH_DATA, keeps_data=keeps_data, kept=kept)) == line


def test_with_data_the_nodes_go_and_what_stays_is_named_after_aws_was_asked_again(
    runner: Callable[..., Change],
) -> None:
    change = runner(lambda: ended(is_well=True), state=WITH_DATA)
    down = down_of(change)
    end_nodes(down, WITH_DATA)
    assert verbs_of(change) == ["up"], "a destroy would end the data"
    values = config_values(change.stack.config_file.read_text())
    assert (values["down"], values["kept"]) == ("true", '["/shared"]')
    assert "no node runs; network and storage are kept" in screen_of(change)
    assert "\n  /shared (FSx for Lustre, 4800 GiB, fs-1): $1.38/h\n" in screen_of(change)
    assert "AWS was asked again: nothing else bills" in screen_of(change)
    assert not is_to_be_repaired(change)


@pytest.mark.parametrize("ends", [end_nodes, end_all])
def test_what_a_killed_run_left_is_found_after_the_engine_has_ended(
    runner: Callable[..., Change], ends: Callable[[Down, StackState], None]
) -> None:
    """AWS does not let go of it: no `down` says then that nothing bills."""
    addresses = {("us-west-2", "describe_addresses", "Addresses"): [{"AllocationId": "eipalloc-1", "Tags": TAGS}]}
    aws = clients_of(addresses, refused={("ec2", "release_address"): "UnauthorizedOperation"})
    change = runner(lambda: ended(is_well=True), state=PLAIN, aws=aws)
    with pytest.raises(StillBills, match="1 thing that bills is left"):
        ends(down_of(change), PLAIN)
    assert "nothing bills" not in screen_of(change)


def test_without_data_all_goes_and_the_cluster_is_forgotten(runner: Callable[..., Change]) -> None:
    change = runner(lambda: ended(is_well=True), state=PLAIN)
    inventory = change.home.inventory_file("train")
    inventory.parent.mkdir(parents=True)
    inventory.write_text(json.dumps(inventory_to_json(an_inventory(cluster_id=ID))))
    change.stack.config_file.write_text(f"{MEANT}  clusterctl:down: 'true'\n")
    end_all(down_of(change), PLAIN)
    assert verbs_of(change) == ["destroy"]
    assert "train: gone; nothing of it is left, nothing bills" in screen_of(change)
    assert not inventory.exists()
    assert change.stack.config_file.read_text() == MEANT, "only what a person wrote"
    assert not is_to_be_repaired(change)


@pytest.mark.parametrize("found", [None, StackState()], ids=["no stack", "an empty one"])
def test_of_a_stack_without_a_cluster_it_is_said_that_there_is_nothing(
    runner: Callable[..., Change], found: StackState | None
) -> None:
    change = runner(state=StackState())
    change.begin()
    take_down_held(request_of(change), change, found, was_cut_off=False)
    assert screen_of(change) == "train: nothing to end: its stack has no resources in this Pulumi backend\n"
    assert not is_to_be_repaired(change)


def test_where_only_a_rehearsal_of_the_stack_lives_a_down_on_aws_names_it(runner: Callable[..., Change]) -> None:
    change = runner(state=StackState())
    inventory = change.home.inventory_file("train@rehearsal")
    inventory.parent.mkdir(parents=True)
    inventory.write_text(json.dumps(inventory_to_json(an_inventory(cluster="train@rehearsal", cluster_id=ID))))
    take_down_held(request_of(change), change, None, was_cut_off=False)
    assert screen_of(change).splitlines() == [
        "train: nothing to end: its stack has no resources in this Pulumi backend",
        "  train@rehearsal exists; to end that: clusterctl down --cluster train@rehearsal",
    ]


def test_a_cluster_that_is_known_here_and_in_no_state_is_asked_about_and_not_forgotten(
    runner: Callable[..., Change],
) -> None:
    change = runner(state=StackState())
    inventory = change.home.inventory_file("train")
    inventory.parent.mkdir(parents=True)
    inventory.write_text(json.dumps(inventory_to_json(an_inventory(cluster_id=ID))))
    take_down_held(request_of(change), change, None, was_cut_off=False)
    assert screen_of(change).splitlines() == [
        "train: nothing to end: its stack has no resources in this Pulumi backend",
        f"  nothing with the cluster's id {ID} bills in us-west-2 of the account {ACCOUNT} either",
        "  to make this computer forget it: clusterctl forget train",
    ]
    assert inventory.exists()


def test_a_home_that_cannot_be_opened_is_an_error_and_no_success(
    runner: Callable[..., Change], tmp_path: Path, screen: Screen
) -> None:
    change = runner()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(NotADirectoryError):
        take_down(request_of(change), screen.output, Home(path=blocked / "home"), {})
