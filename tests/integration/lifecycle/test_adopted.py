"""Clusters in a network that exists, on capacity that exists: nothing of either is changed, and both outlive them."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl_rehearsal.region.existing import is_existing
from clusterctl_rehearsal.region.record import Record

from tests.integration.recorded_stack import INSTANCE
from tests.integration.rehearsed import Rehearsed, rehearsed

VPC_ID, SUBNET_ID, NETWORK_CIDR = "vpc-0a1b2c3d4e5f67890", "subnet-0a1b2c3d4e5f67890", "172.31.16.0/26"
BLOCK_ID, RESERVATION_ID = "cr-0b10c0000000000b1", "cr-0e5e7a7100000000a"
ADOPTED: dict[str, Any] = {
    "network": {"adopt": {"vpc_id": VPC_ID, "node_subnet_id": SUBNET_ID}},
    "access": {"mode": "private"},
    "instance_type": "p5.48xlarge",
}
NETWORK: dict[str, Any] = {
    "vpc_id": VPC_ID,
    "vpc_cidr": "172.31.0.0/16",
    "subnet_id": SUBNET_ID,
    "subnet_cidr": NETWORK_CIDR,
    "zone": "us-west-2c",
    "way_out": "nat",
    "taken": ["172.31.16.60", "172.31.16.40"],
}
PLACES: dict[str, Any] = {"instance_type": "p5.48xlarge", "zone": "us-west-2c", "places": 3}
BLOCK = {**PLACES, "id": BLOCK_ID, "is_block": True, "ends_in_s": 3 * 3600}
RESERVATION = {**PLACES, "id": RESERVATION_ID, "match": "open"}
LATER = {**PLACES, "id": "cr-0000000000000001a", "is_block": True, "begins_in_s": 7200, "ends_in_s": 90_000}
SETTINGS = {"existing": {"networks": [NETWORK], "reservations": [BLOCK, RESERVATION, LATER]}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """A stack whose region has the network and the reservations above; its machines are only written down."""
    folder: Path = tmp_path_factory.mktemp("adopted")
    with rehearsed(folder, machines="none", nodes=2, **ADOPTED) as made:
        made.config.pop("zone")
        made.config["caps"] = {"runtime": "12h"}
        yield made


def existing(cluster: Rehearsed) -> list[Record]:
    return [row for row in cluster.resources() if is_existing(row)]


def addresses(cluster: Rehearsed) -> list[str]:
    rows = [row for row in cluster.resources() if row.token == INSTANCE]
    return sorted(str(row.outputs["privateIp"]) for row in rows)


def test_nodes_live_in_the_block_and_in_the_network_that_exist_and_leave_both_as_they_were(cluster: Rehearsed) -> None:
    cluster.write(machines="none", settings=SETTINGS, capacity_block=BLOCK_ID)
    cluster.up()
    before, nodes = existing(cluster), addresses(cluster)
    inventory = cluster.inventory()
    instances = [row for row in cluster.resources() if row.token == INSTANCE]
    assert [row.facts["reservation"] for row in instances] == [BLOCK_ID] * 2
    assert [row.facts["market"] for row in instances] == ["capacity-block"] * 2
    assert [row.facts["placement_group"] for row in instances] == [None] * 2
    assert inventory["zone"] == "us-west-2c"
    assert inventory["deadline_reason"] == "capacity-block"
    assert all(IPv4Address(each) in IPv4Network(NETWORK_CIDR) for each in nodes)
    ours = {row.token.rpartition(":")[2] for row in cluster.resources() if not is_existing(row)}
    assert not ours & {"Vpc", "Subnet", "Route", "RouteTable", "NatGateway", "CapacityReservation", "PlacementGroup"}
    preview = cluster.pulumi("preview", "--expect-no-changes")
    assert preview.exit_code == 0, preview.text

    cluster.write(machines="none", settings=SETTINGS, nodes=3)
    cluster.up()
    assert addresses(cluster)[:2] == nodes

    cluster.down()
    assert not [row for row in cluster.resources() if not is_existing(row)]
    assert [(row.id, row.inputs, row.tags) for row in existing(cluster)] == [
        (row.id, row.inputs, row.tags) for row in before
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"capacity_block": LATER["id"]}, "is scheduled: it begins at"),
        ({"reservation": "cr-0123456789abcdef0"}, "InvalidCapacityReservationId.NotFound"),
        ({"access": {"mode": "public", "ssh_from": ["203.0.113.7/32"]}}, "leads out by nat-"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_made(
    cluster: Rehearsed, changes: dict[str, Any], reason: str
) -> None:
    before = dict(cluster.config)
    cluster.config.pop("capacity_block", None)
    try:
        cluster.write(machines="none", settings=SETTINGS, **{"nodes": 2, **changes})
        done = cluster.run("up", str(cluster.folder))
    finally:
        cluster.config.clear()
        cluster.config.update(before)
    assert done.exit_code == 1
    assert reason in done.text
    assert not [row for row in cluster.resources() if not is_existing(row)]
