"""What a plan makes of a reservation, a block and a network that exist."""

from __future__ import annotations

import json
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Any  # a configuration as YAML gives it

import pytest
from clusterctl_infra.adopted import Adopted, AdoptedCapacity, AdoptedNetwork, adopted_from_json, adopted_to_json
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.network import free_range
from clusterctl_infra.plan.planner import plan
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, IDENTITY, a_config, problems_of

ID = "cr-0a1b2c3d4e5f67890"
NETWORK = AdoptedNetwork(
    vpc_id="vpc-0a1b2c3d",
    subnet_id="subnet-0a1b2c3d",
    subnet_cidr="172.31.16.0/24",
    zone="us-west-2b",
    slot_cidr="172.31.16.64/29",
)
ADOPT: dict[str, Any] = {"network": {"adopt": {"vpc_id": NETWORK.vpc_id, "node_subnet_id": NETWORK.subnet_id}}}


def capacity(*, ends_in: timedelta | None = None, zone: str = "us-west-2b", type: str = "p5.48xlarge") -> Adopted:
    ends_at = None if ends_in is None else BORN + ends_in
    found = AdoptedCapacity(reservation_id=ID, instance_type=type, zone=zone, ends_at=ends_at, placement_group=None)
    return Adopted(capacity=found)


def planned(adopted: Adopted, **changes: Any) -> ClusterPlan:
    return plan(a_config(**changes), CATALOG, identity=IDENTITY, ledger=Ledger(), now=BORN, adopted=adopted)


def test_a_block_is_paid_in_advance_has_no_group_and_ends_the_cluster_half_an_hour_before_itself() -> None:
    made = planned(capacity(ends_in=timedelta(hours=5)), capacity_block=ID)
    assert (made.capacity, made.placement, made.reservation_id) == ("capacity-block", "none", ID)
    assert made.price.node_usd_per_hour == 0
    assert made.price.reservation_tail_usd == 0
    assert made.deadline.at == BORN + timedelta(hours=4, minutes=30)
    assert made.deadline.reason == "capacity-block"
    assert problems_of(made) == {}


def test_a_reservation_costs_its_machines_and_ends_the_cluster_with_itself() -> None:
    made = planned(capacity(ends_in=timedelta(hours=5)), reservation=ID)
    assert (made.capacity, made.placement) == ("reservation", "cluster")
    assert made.price.node_usd_per_hour == planned(Adopted()).price.node_usd_per_hour
    assert (made.deadline.at, made.deadline.reason) == (BORN + timedelta(hours=5), "reservation")
    endless = planned(capacity(), reservation=ID)
    assert (endless.deadline.ceiling_at, endless.deadline.reason) == (None, "runtime")


@pytest.mark.parametrize(
    ("adopted", "changes", "path", "words"),
    [
        (capacity(type="p4d.24xlarge"), {"reservation": ID}, "reservation", "holds p4d.24xlarge, but the nodes are"),
        (capacity(zone="us-west-2c"), {"capacity_block": ID}, "capacity_block", "cluster has been in us-west-2b"),
        (capacity(), {"reservation": ID, "zone": "us-west-2a"}, "zone", "reservation is in us-west-2b; leave zone out"),
        (capacity(ends_in=timedelta(0)), {"reservation": ID}, "reservation", "lasts no longer"),
        (Adopted(network=NETWORK), {**ADOPT, "nodes": 9}, "nodes", "hold 8 nodes"),
        (
            Adopted(network=NETWORK),
            {**ADOPT, "storage": [{"mount": "/shared", "efs": {}}]},
            "storage",
            "write another subnet of the zone as network.adopt.service_subnet_id",
        ),
        (
            Adopted(network=NETWORK, capacity=capacity(zone="us-west-2a").capacity),
            {**ADOPT, "reservation": ID},
            "network.adopt.node_subnet_id",
            "choose a subnet in us-west-2a",
        ),
    ],
)
def test_what_does_not_go_together_is_an_error(
    adopted: Adopted, changes: dict[str, Any], path: str, words: str
) -> None:
    assert words in problems_of(planned(adopted, **changes))[path]


def test_slots_have_the_chosen_addresses_of_an_adopted_network_and_its_gateway_is_not_counted() -> None:
    made = planned(Adopted(network=NETWORK), **ADOPT, access={"mode": "private"})
    assert [slot.private_ip for slot in made.slots] == [f"172.31.16.{64 + slot}" for slot in range(4)]
    assert (made.price.gateway_usd_per_hour, made.price.addresses_usd_per_hour) == (0, 0)
    assert made.network.is_looked_up
    assert not planned(Adopted(), **ADOPT).network.is_looked_up


def test_what_was_looked_up_comes_back_from_the_stacks_config() -> None:
    found = Adopted(network=NETWORK, capacity=capacity(ends_in=timedelta(hours=1)).capacity)
    assert adopted_from_json(json.loads(json.dumps(adopted_to_json(found)))) == found
    assert adopted_from_json({}) == Adopted()


@given(
    taken=st.lists(st.integers(0, 255).map(lambda last: f"172.31.16.{last}"), max_size=40),
    nodes=st.integers(1, 40),
)
def test_a_free_range_holds_the_nodes_and_nobody_elses_address(taken: list[str], nodes: int) -> None:
    chosen = free_range("172.31.16.0/24", taken, nodes=nodes)
    if chosen is None:
        return
    block = IPv4Network(chosen)
    others = [*taken, *(f"172.31.16.{last}" for last in (0, 1, 2, 3, 255))]
    assert block.num_addresses >= nodes
    assert block.subnet_of(IPv4Network("172.31.16.0/24"))
    assert not [each for each in others if IPv4Network(each).subnet_of(block)]


def test_a_range_leaves_room_to_grow_where_there_is_room() -> None:
    chosen = free_range("172.31.16.0/24", [], nodes=4)  # not the last sixteen: the last address is AWS's
    assert chosen == "172.31.16.224/28"
