"""What a state knows and AWS no longer has: machines, what a cluster stands on, and spot machines, whose requests
nobody can cancel any more."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any  # rows of a state

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource, parse_state
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.drift import (
    gone_reservations,
    gone_spot_machines,
    living_slots,
    lost_parts,
    lost_ways_out,
    missing_instances,
)
from clusterctl.lifecycle.up import forget_missing
from clusterctl_infra.names import BIRTH_TAG, ID_TAG, IDENTITY_TYPE, SLOT_TAG

from tests.unit.cli.cloud.fake_answers import answering, clients_of
from tests.unit.cli.lifecycle.recorded_runs import RecordedEngine

ID = "0123456789ab"


def state_of(birth: str) -> StackState:
    """A cluster of one machine, i-0."""
    tags = {SLOT_TAG: "0", BIRTH_TAG: birth}
    rows: list[dict[str, Any]] = [
        {"urn": "urn:identity", "type": IDENTITY_TYPE, "id": ID, "outputs": {"cluster_id": ID}},
        {
            "urn": "urn:i-0",
            "type": "aws:ec2/instance:Instance",
            "id": "i-0",
            "inputs": {"tags": tags},
            "outputs": {"tags": tags},
        },
    ]
    return parse_state(json.dumps({"deployment": {"resources": [{"custom": True, **row} for row in rows]}}))


@pytest.mark.parametrize(
    ("birth", "shown", "gone"),
    [
        ("agent=1 spot-max=20", "running", ()),
        ("agent=1 spot-max=20", "shutting-down", ()),
        ("agent=1 spot-max=20", "terminated", ("urn:i-0",)),
        ("agent=1 spot-max=20", None, ("urn:i-0",)),
        ("agent=1", None, ()),
    ],
    ids=["it runs", "it is ending", "it has ended", "AWS shows it no more", "it has no request"],
)
def test_only_a_spot_machine_that_has_ended_by_aws_s_word_is_gone(
    birth: str, shown: str | None, gone: tuple[str, ...]
) -> None:
    assert gone_spot_machines(showing(shown), state_of(birth)) == gone


@pytest.mark.parametrize(
    ("shown", "gone"),
    [("active", ()), ("scheduled", ()), ("cancelled", ("urn:cr-1",)), (None, ("urn:cr-1",))],
)
def test_a_reservation_that_aws_does_not_hold_any_more_is_gone(shown: str | None, gone: tuple[str, ...]) -> None:
    reservation = StateResource(urn="urn:cr-1", type=RESERVATION_TYPE, id="cr-1")
    row = {
        "CapacityReservationId": "cr-1",
        "InstanceType": "p5.48xlarge",
        "State": shown,
        "CreateDate": datetime(2026, 11, 21, tzinfo=UTC),
        "Tags": [{"Key": ID_TAG, "Value": ID}],
    }
    rows = [] if shown is None else [row]
    clients = clients_of({("us-west-2", "describe_capacity_reservations", "CapacityReservations"): rows})
    state = StackState(resources=(*state_of("agent=1").resources, reservation))
    assert gone_reservations(clients, state) == gone


@pytest.mark.parametrize(
    ("shown", "living"),
    [("running", {0}), ("pending", {0}), ("shutting-down", set()), ("terminated", set()), (None, set())],
)
def test_a_slot_lives_while_its_machine_is_not_on_its_way_out(shown: str | None, living: set[int]) -> None:
    assert living_slots(showing(shown), state_of("agent=1")) == living


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("running", []),
        ("terminated", ["slot 0: i-0 is gone (terminated); the slot is remade"]),
        (None, ["slot 0: i-0 is gone (AWS does not know it); the slot is remade"]),
    ],
)
def test_a_machine_of_the_state_that_runs_no_more_is_missing(shown: str | None, missing: list[str]) -> None:
    found = missing_instances(showing(shown), state_of("agent=1"), tell=pytest.fail)
    assert [machine.line(nodes=1) for machine in found] == missing


@pytest.mark.parametrize(
    ("shown", "vpcs", "lost"),
    [(None, [], ["vpc-1"]), (None, ["vpc-1"], []), ("running", [], [])],
    ids=["it was reaped", "its network is there", "its machine lives"],
)
def test_a_cluster_without_machine_and_network_is_lost(shown: str | None, vpcs: list[str], lost: list[str]) -> None:
    network = StateResource(urn="urn:vpc", type="aws:ec2/vpc:Vpc", id="vpc-1")
    state = StackState(resources=(*state_of("agent=1").resources, network))
    assert [part.id for part in lost_parts(showing(shown, vpcs=vpcs), state)] == lost


def test_of_a_state_without_a_cluster_aws_is_asked_nothing() -> None:
    clients = showing("running")
    assert (missing_instances(clients, StackState(), tell=pytest.fail), lost_parts(clients, StackState())) == ((), ())
    assert answering(clients).asked == []


WAY_OUT = (
    StateResource(urn="urn:nat", type="aws:ec2/natGateway:NatGateway", id="nat-1"),
    StateResource(urn="urn:eip", type="aws:ec2/eip:Eip", id="eipalloc-1"),
)


@pytest.mark.parametrize(
    ("there", "lost"), [(True, []), (False, ["eipalloc-1", "nat-1"])], ids=["they are there", "they ended"]
)
def test_a_way_out_that_the_state_knows_and_aws_does_not_have_is_lost(there: bool, lost: list[str]) -> None:
    state = StackState(resources=(*state_of("agent=1").resources, *WAY_OUT))
    clients = showing("running", has_way_out=there)
    assert sorted(part.id for part in lost_ways_out(clients, state)) == lost


def test_of_a_state_without_a_way_out_aws_is_asked_nothing() -> None:
    clients = showing("running")
    assert lost_ways_out(clients, state_of("agent=1")) == ()
    assert answering(clients).asked == []


@pytest.mark.parametrize(
    ("shown", "was_cut_off", "forgotten"),
    [
        ("running", False, []),
        ("running", True, ["urn:eip", "urn:nat"]),
        ("terminated", False, ["urn:eip", "urn:i-0", "urn:nat"]),
    ],
    ids=["a machine runs", "a change was cut off", "the machine is gone"],
)
def test_an_up_forgets_what_is_gone_and_looks_for_lost_ways_out_only_where_they_may_be(
    runner: Callable[..., Change], shown: str, was_cut_off: bool, forgotten: list[str]
) -> None:
    state = StackState(resources=(*state_of("agent=1").resources, *WAY_OUT))
    change = runner(state=state, aws=showing(shown))
    living = forget_missing(change, state, nodes=1, was_cut_off=was_cut_off)
    assert sorted({part.urn for part in state.resources} - {part.urn for part in living.resources}) == forgotten
    assert isinstance(change.engine, RecordedEngine)
    assert sorted(change.engine.refreshed) == forgotten, "the engine's state has them no more, either"


def showing(shown: str | None, *, vpcs: Sequence[str] = (), has_way_out: bool = False) -> Clients:
    """A region with these networks, and with the machine in this state; None: it is not shown any more."""
    tags = [{"Key": ID_TAG, "Value": ID}]
    rows = [] if shown is None else [{"Instances": [{"InstanceId": "i-0", "State": {"Name": shown}, "Tags": tags}]}]
    return clients_of(
        {
            ("us-west-2", "describe_instances", "Reservations"): rows,
            ("us-west-2", "describe_vpcs", "Vpcs"): [{"VpcId": vpc, "Tags": tags} for vpc in vpcs],
            ("us-west-2", "describe_nat_gateways", "NatGateways"): [{"NatGatewayId": "nat-1", "Tags": tags}][
                :has_way_out
            ],
            ("us-west-2", "describe_addresses", "Addresses"): [{"AllocationId": "eipalloc-1", "Tags": tags}][
                :has_way_out
            ],
        }
    )
