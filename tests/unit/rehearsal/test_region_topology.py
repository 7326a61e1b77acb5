"""DescribeInstanceTopology of the region: simulated racks, shown as AWS shows its own."""

from __future__ import annotations

from typing import Any  # parameters

import pytest

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import SmallRegion


def test_machines_stand_in_racks_by_turns(world: SmallRegion, client: Client) -> None:
    _, subnet, group = world.network()
    ids = [world.launch(world.template(subnet, group, slot)).id for slot in range(4)]
    rows = client.ec2("DescribeInstanceTopology", InstanceIds=ids)["Instances"]
    assert {row["InstanceId"] for row in rows} == set(ids)
    paths = {row["InstanceId"]: tuple(row["NetworkNodes"]) for row in rows}
    assert [len(path) for path in paths.values()] == [3] * 4
    assert paths[ids[0]] == paths[ids[2]] != paths[ids[1]] == paths[ids[3]]


@pytest.mark.parametrize(("type", "levels"), [("p6-b200.48xlarge", 4), ("g6e.48xlarge", 3), ("g6.12xlarge", 0)])
def test_not_every_type_has_a_topology(world: SmallRegion, client: Client, type: str, levels: int) -> None:
    node = world.node(instanceType=type)
    (row,) = client.ec2("DescribeInstanceTopology", InstanceIds=[node.id])["Instances"]
    assert len(row.get("NetworkNodes") or []) == levels


def test_a_topology_without_ids_comes_in_pages(world: SmallRegion, client: Client) -> None:
    _, subnet, group = world.network()
    made = {world.launch(world.template(subnet, group, slot)).id for slot in range(3)}
    first = client.ec2("DescribeInstanceTopology", MaxResults=2)
    second = client.ec2("DescribeInstanceTopology", MaxResults=2, NextToken=first["NextToken"])
    assert {row["InstanceId"] for row in [*first["Instances"], *second["Instances"]]} == made


TOPOLOGY_REFUSED = [
    ({"InstanceIds": [f"i-{number:017x}" for number in range(101)]}, "InvalidParameterValue"),
    ({"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceID.NotFound"),
    ({"InstanceIds": ["i-0123456789abcdef0"], "MaxResults": 5}, "InvalidParameterCombination"),
]


@pytest.mark.parametrize(("parameters", "code"), TOPOLOGY_REFUSED)
def test_what_no_topology_is_told_for(client: Client, parameters: dict[str, Any], code: str) -> None:
    assert client.ec2("DescribeInstanceTopology", **parameters) == code
