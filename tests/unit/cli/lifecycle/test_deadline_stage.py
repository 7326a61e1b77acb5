"""The last question of an `up`: what is said where AWS would not end a machine at the deadline."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.deadline_stage import try_deadline
from clusterctl_infra.outputs import InventoryNode, inventory_to_json

from tests.unit.cli.cloud.fake_answers import answering, clients_of
from tests.unit.cli.cloud.fake_state_machine import DENIED, WOULD, StateMachine, succeeded
from tests.unit.cli.conftest import MakeInventory, Screen
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, Clock, alive, held


@pytest.fixture
def made(tmp_path: Path, make_inventory: MakeInventory, screen: Screen) -> Change:
    """A change of the cluster whose nodes 0 and 1 are the instances i-0 and i-1."""
    gateways = {("us-west-2", "describe_nat_gateways", "NatGateways"): [{"NatGatewayId": "nat-0"}]}
    held_change = held(tmp_path, Clock(DEADLINE), repair_s=0, aws=clients_of({**alive(), **gateways})).change
    change = replace(held_change, output=screen.output)
    nodes = tuple(
        InventoryNode(slot=n, rank=n, name=f"train-{n}", private_ip="", host_public_key="", instance_id=f"i-{n}")
        for n in range(2)
    )
    file = change.home.inventory_file(change.cluster)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(inventory_to_json(make_inventory(nodes=nodes))))
    return change


def play(change: Change, machine: StateMachine) -> None:
    """Gives the change's account this state machine."""
    answering(change.clients).services["sfn"] = machine


def test_where_aws_would_end_every_node_nothing_is_said(made: Change, screen: Screen) -> None:
    play(made, StateMachine([succeeded(**{"i-0": WOULD, "i-1": WOULD})]))
    assert try_deadline(made) is None
    assert screen.err == ""


def test_a_node_that_aws_would_not_end_is_named_with_the_reason_and_what_ends_it(made: Change, screen: Screen) -> None:
    play(made, StateMachine([succeeded(**{"i-0": WOULD, "i-1": DENIED})]))
    unproven = try_deadline(made)
    assert unproven is not None
    assert unproven.code == "NotProven"
    assert unproven.message.startswith(f"AWS would not end 1 node at the deadline: train-1: {DENIED}")
    assert unproven.hint == "clusterctl down --cluster train"
    assert "WARNING: AWS would not end 1 node at the deadline" in screen.err
    assert "Only the nodes' own timers would end them" in screen.err


def test_a_gateway_that_aws_would_not_delete_is_named_with_what_it_does(made: Change, screen: Screen) -> None:
    play(made, StateMachine([succeeded(**{"i-0": WOULD, "i-1": WOULD, "nat-0": DENIED})]))
    unproven = try_deadline(made)
    assert unproven is not None
    assert unproven.message.startswith(f"AWS would not end nat-0 at the deadline: nat-0: {DENIED}")
    assert "What is named here and is not a node would go on billing until you run clusterctl down." in unproven.message
    assert "own timers" not in screen.err


def test_of_the_nodes_alone_that_are_known_to_run_is_asked(made: Change) -> None:
    play(made, StateMachine([succeeded(**{"i-0": WOULD})]))
    assert try_deadline(made, slots={0}) is None


def test_where_nobody_can_say_the_cluster_counts_as_not_proven(made: Change) -> None:
    play(made, StateMachine([], name="another cluster's"))
    unproven = try_deadline(made)
    assert unproven is not None
    assert unproven.message.startswith("it is not known whether AWS would end train at its deadline: there is no state")
    assert unproven.code == "StateMachineDoesNotExist"
