"""What keeps a cluster from using a reservation, a block or a network that exists, and whose addresses are whose."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any  # rows as EC2 answers

import pytest
from clusterctl.cloud.adopted_capacity import capacity_problem, found_capacity
from clusterctl.cloud.adopted_network import FoundNetwork, addresses, network_problem, way_out
from clusterctl.lifecycle.adopt import refuse_taken
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

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
    ("row", "as_block", "machines", "told"),
    [
        (ROW, False, 4, "has 3 of its 4 places free, and 4 are needed"),
        (ROW, True, 1, f"is no block: write reservation: {ID}"),
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
def test_why_a_reservation_is_not_used(row: dict[str, Any], as_block: bool, machines: int, told: str) -> None:
    problem = capacity_problem(found_capacity(row), as_block=as_block, machines=machines, now=NOW)
    assert problem is not None
    assert told in problem


@pytest.mark.parametrize(
    ("changes", "is_public", "told"),
    [
        ({}, True, "leads out by nat-0a1b2c3d, so public addresses do not work in it"),
        ({"way_out": "igw-0a1b2c3d"}, False, "machines without a public address cannot use that"),
        ({"way_out": None}, False, "has no route to 0.0.0.0/0"),
        ({"has_dns": False}, False, "has enableDnsSupport off"),
        ({"free": 1}, False, "has 1 of its 64 addresses free, and 2 are needed"),
    ],
)
def test_why_a_network_is_not_used(changes: dict[str, Any], is_public: bool, told: str) -> None:
    assert network_problem(NETWORK, is_public=False, machines=2) is None
    problem = network_problem(replace(NETWORK, **changes), is_public=is_public, machines=2)
    assert problem is not None
    assert told in problem


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
    with pytest.raises(CloudError, match=r"172\.31\.16\.41 in subnet-0a1b2c3d: addresses of this cluster's nodes"):
        refuse_taken(NETWORK, "172.31.16.40/29", nodes=2)
