"""What keeps a cluster from using a reservation, a block or a network that exists, and whose addresses are whose."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # rows as EC2 answers

import pytest
from botocore.model import ShapeResolver
from clusterctl.cloud.adopted_capacity import capacity_problem, find_capacity, found_capacity
from clusterctl.cloud.adopted_network import FoundNetwork, addresses, find_network, network_problem, way_out
from clusterctl.cloud.answers import AnswerParsers, answered
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.adopt import look_up, refuse_taken
from clusterctl.lifecycle.intent import read_intent
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from tests.unit.cli.cloud.fake_clients import FakeClients

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ID, BLOCK_ID = "cr-0a1b2c3d4e5f67890", "cr-0b10c0000000000b1"
ROW: dict[str, Any] = {
    "CapacityReservationId": ID,
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-west-2c",
    "State": "active",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 3,
    "PlacementGroupArn": "arn:aws:ec2:us-west-2:123456789012:placement-group/close",
}
BLOCK: dict[str, Any] = {
    **ROW,
    "CapacityReservationId": BLOCK_ID,
    "ReservationType": "capacity-block",
    "StartDate": NOW + timedelta(hours=2),
    "EndDate": NOW + timedelta(hours=26),
    "PlacementGroupArn": None,
}
NETWORK = FoundNetwork(
    vpc_id="vpc-0a1b2c3d",
    subnet_id="subnet-0a1b2c3d",
    subnet_cidr="172.31.16.0/26",
    zone="us-west-2c",
    free=40,
    taken=("172.31.16.41", "172.31.16.48/28"),
    way_out="nat-0a1b2c3d",
    has_dns=True,
)


def test_a_reservation_that_is_active_and_free_is_used_with_its_placement_group() -> None:
    found = found_capacity(ROW)
    assert capacity_problem(found, as_block=False, machines=3, now=NOW) is None
    assert found.adopted().placement_group == "close"
    assert capacity_problem(found_capacity(BLOCK), as_block=True, machines=3, now=NOW) is None


@pytest.mark.parametrize(
    ("row", "as_block", "machines", "reason"),
    [
        (ROW, False, 4, "has 3 of its 4 places free, and 4 are needed"),
        (ROW, True, 1, f"is not a capacity block: write reservation: {ID}"),
        (BLOCK, False, 1, f"is a capacity block: write capacity_block: {BLOCK_ID}"),
        (
            {**BLOCK, "State": "scheduled"},
            True,
            1,
            "is scheduled: it begins at 2026-11-22 14:00 UTC; run clusterctl up",
        ),
        ({**ROW, "State": "cancelled"}, False, 1, "is cancelled: it holds no place any more"),
        ({**ROW, "EndDate": NOW}, False, 1, "ended at 2026-11-22 12:00 UTC"),
        ({**ROW, "InstancePlatform": "Windows"}, False, 1, "is for Windows, and nodes run Linux/UNIX"),
    ],
)
def test_why_a_reservation_is_not_used(row: dict[str, Any], as_block: bool, machines: int, reason: str) -> None:
    problem = capacity_problem(found_capacity(row), as_block=as_block, machines=machines, now=NOW)
    assert problem is not None
    assert reason in problem


@pytest.mark.parametrize(
    ("changes", "is_public", "reason"),
    [
        ({}, True, "leads out by nat-0a1b2c3d, so public addresses do not work in it"),
        ({"way_out": "igw-0a1b2c3d"}, False, "machines without a public address cannot use that"),
        ({"way_out": None}, False, "has no route to 0.0.0.0/0"),
        ({"has_dns": False}, False, "has enableDnsSupport off"),
        ({"free": 1}, False, "has 1 of its 64 addresses free, and 2 are needed"),
    ],
)
def test_why_a_network_is_not_used(changes: dict[str, Any], is_public: bool, reason: str) -> None:
    assert network_problem(NETWORK, is_public=False, machines=2) is None
    problem = network_problem(replace(NETWORK, **changes), is_public=is_public, machines=2)
    assert problem is not None
    assert reason in problem


def test_a_subnets_own_route_table_comes_before_the_main_one() -> None:
    def table(way: str, **association: Any) -> dict[str, Any]:
        route = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": way, "State": "active"}
        return {"Associations": [association], "Routes": [route]}

    tables = [table("nat-main", Main=True), table("nat-own", SubnetId="subnet-1")]
    assert (way_out(tables, "subnet-1"), way_out(tables, "subnet-2")) == ("nat-own", "nat-main")
    tables[1]["Routes"][0]["State"] = "blackhole"
    assert way_out(tables, "subnet-1") is None


def test_the_addresses_of_the_clusters_own_machines_are_nobody_elses() -> None:
    own = {"PrivateIpAddress": "172.31.16.40", "TagSet": [{"Key": ID_TAG, "Value": "abc"}]}
    other = {"PrivateIpAddress": "172.31.16.41", "TagSet": [{"Key": ID_TAG, "Value": "def"}]}
    prefix = {"PrivateIpAddress": "172.31.16.42", "Ipv4Prefixes": [{"Ipv4Prefix": "172.31.16.48/28"}]}
    efa_only: dict[str, Any] = {"PrivateIpAddress": None, "PrivateIpAddresses": []}
    rows = [own, other, prefix, efa_only]
    assert addresses(rows, own_id="abc") == ["172.31.16.41", "172.31.16.42", "172.31.16.48/28"]
    assert "172.31.16.40" in addresses(rows, own_id=None)


def test_a_slots_address_that_somebody_else_has_by_now_is_named() -> None:
    refuse_taken(NETWORK, "172.31.16.40/29", nodes=1)
    with pytest.raises(CloudError, match=r"172\.31\.16\.41 in subnet-0a1b2c3d: these addresses belong to slots"):
        refuse_taken(NETWORK, "172.31.16.40/29", nodes=2)


VPC, SUBNET = NETWORK.vpc_id, NETWORK.subnet_id
SUBNET_ROW: dict[str, Any] = {
    "SubnetId": SUBNET,
    "VpcId": VPC,
    "CidrBlock": "172.31.16.0/26",
    "AvailabilityZone": "us-west-2c",
    "AvailableIpAddressCount": 40,
    "State": "available",
}


class Pages:
    """The pages of one call: a single one, with these rows."""

    def __init__(self, key: str, rows: list[dict[str, Any]]) -> None:
        self._page = answered({key: rows})

    def paginate(self, **asked: Any) -> list[Any]:
        return [self._page]


class OddEc2:
    """Answers about one network and one reservation with whatever it was given."""

    def __init__(self, **given: Any) -> None:
        self._given = given

    def _rows(self, key: str, sound: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._given.get(key, sound)
        return found

    def describe_subnets(self, **asked: Any) -> Any:
        return answered({"Subnets": self._rows("Subnets", [SUBNET_ROW])})

    def describe_vpc_attribute(self, **asked: Any) -> Any:
        return answered({"EnableDnsSupport": {"Value": True}})

    def get_subnet_cidr_reservations(self, **asked: Any) -> Any:
        return answered({"SubnetIpv4CidrReservations": self._rows("Held", [])})

    def describe_capacity_reservations(self, **asked: Any) -> Any:
        return answered({"CapacityReservations": self._rows("CapacityReservations", [ROW])})

    def get_paginator(self, name: str) -> Pages:
        key = {"describe_network_interfaces": "NetworkInterfaces", "describe_route_tables": "RouteTables"}[name]
        return Pages(key, self._rows(key, []))


def odd_clients(**given: Any) -> Clients:
    return FakeClients(ec2=OddEc2(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Subnets": []}, f"AWS has no subnet {SUBNET} any more"),
        ({"Subnets": [{**SUBNET_ROW, "SubnetId": "subnet-other"}]}, f"AWS has no subnet {SUBNET} any more"),
        ({"Subnets": [{**SUBNET_ROW, "VpcId": "vpc-other"}]}, "is in vpc-other, and cluster.yaml says"),
        ({"Subnets": [{**SUBNET_ROW, "State": "failed"}]}, "is failed, not available"),
        ({"Subnets": [{**SUBNET_ROW, "CidrBlock": "172.31.16.0/9x"}]}, "CidrBlock '172.31.16.0/9x', no IPv4 address"),
        ({"Subnets": [{**SUBNET_ROW, "CidrBlock": "0.0.0.0/0"}]}, "CidrBlock '0.0.0.0/0', a range larger than /16"),
        ({"Subnets": [{**SUBNET_ROW, "CidrBlock": "::/64"}]}, "CidrBlock '::/64', no IPv4 address or range"),
        ({"Subnets": [{**SUBNET_ROW, "AvailabilityZone": ""}]}, f"no AvailabilityZone for {SUBNET}"),
        ({"Subnets": [{"SubnetId": SUBNET}]}, "the answer has no 'VpcId'"),
        ({"NetworkInterfaces": [{"PrivateIpAddress": "10.0.0.999"}]}, "PrivateIpAddress '10.0.0.999', no IPv4"),
        ({"NetworkInterfaces": [{"Ipv4Prefixes": [{"Ipv4Prefix": "x"}]}]}, "Ipv4Prefix 'x', no IPv4"),
        ({"Held": [{"Cidr": "10.0.0.1/24"}]}, "Cidr '10.0.0.1/24', no IPv4"),
    ],
)
def test_an_odd_answer_about_a_network_is_a_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CloudError) as caught:
        find_network(odd_clients(**given), vpc_id=VPC, subnet_id=SUBNET, own_id=None)
    assert message in caught.value.message


def test_a_network_is_found_with_the_addresses_of_others() -> None:
    interfaces = [{"PrivateIpAddress": "172.31.16.41", "Ipv4Prefixes": [{"Ipv4Prefix": "172.31.16.48/28"}]}]
    found = find_network(odd_clients(NetworkInterfaces=interfaces), vpc_id=VPC, subnet_id=SUBNET, own_id=None)
    assert found.taken == NETWORK.taken


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], f"the reservation {ID} is not in us-west-2, or not shared with this account"),
        ([{**ROW, "CapacityReservationId": BLOCK_ID}], f"AWS answered with {BLOCK_ID}, asked for {ID}"),
        ([{**ROW, "AvailabilityZone": None}], f"no AvailabilityZone for {ID}"),
        ([{**ROW, "InstanceType": ""}], f"no InstanceType for {ID}"),
        ([{}], "no CapacityReservationId for a reservation"),
    ],
)
def test_an_odd_answer_about_a_reservation_is_a_sentence(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(CloudError) as caught:
        find_capacity(odd_clients(CapacityReservations=rows), ID)
    assert message in caught.value.message


@pytest.mark.parametrize("body", [b"<r><vCpus>many</vCpus></r>", b"<r><at>yesterday</at></r>"])
def test_numbers_and_times_that_are_none_are_an_answer_that_is_not_of_aws(body: bytes) -> None:
    parser = AnswerParsers().create_parser("ec2")
    shapes: Any = {
        "R": {"type": "structure", "members": {"vCpus": {"shape": "Count"}, "at": {"shape": "Time"}}},
        "Count": {"type": "integer"},
        "Time": {"type": "timestamp"},
    }
    shape = ShapeResolver(shapes).get_shape_by_name("R", None)
    response = {"status_code": 200, "headers": {}, "body": body}
    with pytest.raises(CloudError, match="the answer is not from AWS"), aws_errors("asking"):
        parser.parse(response, shape)


NAT: dict[str, Any] = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-0a1b2c3d", "State": "active"}
TABLE: dict[str, Any] = {"Associations": [{"SubnetId": SUBNET}], "Routes": [NAT]}


@pytest.mark.parametrize(("taken", "slots"), [(10, "172.31.16.32/28"), (62, None)], ids=["room behind", "scattered"])
def test_nodes_need_a_range_of_addresses_beside_each_other(tmp_path: Path, taken: int, slots: str | None) -> None:
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)
    stack.cluster_file.write_text(
        "name: train\nregion: us-west-2\nnodes: 5\ninstance_type: p5.48xlarge\naccess: {mode: private}\n"
        f"network: {{adopt: {{vpc_id: {VPC}, node_subnet_id: {SUBNET}}}}}\n"
    )
    others = [{"PrivateIpAddress": f"172.31.16.{host}"} for host in range(1, taken + 1, 3)]
    clients = odd_clients(NetworkInterfaces=others, RouteTables=[TABLE])

    def found() -> str:
        intent = read_intent(stack, "", nodes=None)
        adopted = look_up(clients, intent, StackState(), source="cluster.yaml", now=NOW)
        assert adopted.network is not None
        return adopted.network.slot_cidr

    if slots is not None:
        assert found() == slots
        return
    with pytest.raises(CloudError, match="has 40 addresses free, but no range of 5 consecutive ones") as refused:
        found()
    assert refused.value.code == "InsufficientFreeAddressesInSubnet"
