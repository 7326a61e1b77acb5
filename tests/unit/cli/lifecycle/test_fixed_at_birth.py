"""A cluster stays where it is: in its region, and with its network's addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # a state and a configuration as JSON has them

import pytest
from clusterctl.engine.state import StackState, parse_state
from clusterctl.lifecycle.fixed_at_birth import (
    refuse_other_home,
    refuse_other_launch,
    refuse_other_network,
    refuse_other_region,
)
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError, UsageError

from tests.unit.infra.plan.plan_cases import a_plan

IDENTITY = "clusterctl:index:Identity"
OURS = "urn:pulumi:dev::p::clusterctl:infra:Cluster$clusterctl:infra:Network$"


def state_of(*, zone: str = "us-west-2b", vpc: str = "10.0.0.0/16", services: str = "10.0.16.0/24") -> StackState:
    rows: list[dict[str, Any]] = [
        {"urn": "urn:own", "type": "aws:ec2/vpc:Vpc", "id": "vpc-0", "inputs": {"cidrBlock": "172.16.0.0/16"}},
        {"urn": "urn:identity", "type": IDENTITY, "id": "1", "outputs": {"zone": zone}},
        network_row("vpc:Vpc", "train-vpc", vpc),
        network_row("subnet:Subnet", "train-nodes", "10.0.0.0/20"),
        network_row("subnet:Subnet", "train-services", services),
    ]
    return parse_state(json.dumps({"deployment": {"resources": [{"custom": True, **row} for row in rows]}}))


def network_row(type: str, name: str, cidr: str) -> dict[str, Any]:
    return {
        "urn": f"{OURS}aws:ec2/{type}::{name}",
        "type": f"aws:ec2/{type}",
        "id": name,
        "inputs": {"cidrBlock": cidr},
    }


def config_of(**network: Any) -> ClusterConfig:
    return ClusterConfig.model_validate(
        {"name": "train", "region": "us-west-2", "nodes": 2, "instance_type": "p5.48xlarge", "network": network}
    )


@pytest.mark.parametrize("zone", ["us-west-2b", "us-west-2-lax-1a"])
def test_the_clusters_own_region_is_let_through(zone: str) -> None:
    refuse_other_region(state_of(zone=zone), "us-west-2", source="cluster.yaml")
    refuse_other_region(StackState(), "eu-west-1", source="cluster.yaml")


def test_another_region_changes_nothing() -> None:
    with pytest.raises(UsageError, match=r"is in us-west-2b, and cluster.yaml says region: eu-west-1"):
        refuse_other_region(state_of(), "eu-west-1", source="cluster.yaml")


def test_the_network_as_it_is_and_other_nodes_addresses_are_let_through() -> None:
    refuse_other_network(state_of(), config_of(node_subnet_cidr="10.0.32.0/20"), source="cluster.yaml", shown="s")
    refuse_other_network(StackState(), config_of(vpc_cidr="10.8.0.0/16"), source="cluster.yaml", shown="s")


@pytest.mark.parametrize(
    ("network", "problem"),
    [
        ({"vpc_cidr": "10.0.0.0/15"}, "network.vpc_cidr: 10.0.0.0/16 → 10.0.0.0/15"),
        ({"service_subnet_cidr": "10.0.17.0/24"}, "network.service_subnet_cidr: 10.0.16.0/24 → 10.0.17.0/24"),
    ],
)
def test_what_would_make_the_network_anew_is_refused(network: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match="1 change would replace the network, nothing was changed") as caught:
        refuse_other_network(state_of(), config_of(**network), source="cluster.yaml", shown="s")
    assert problem in caught.value.problems[0]


def adopting(subnet: str) -> dict[str, Any]:
    return {"adopt": {"vpc_id": "vpc-0a1b2c3d", "node_subnet_id": subnet}}


def in_subnet(subnet: str) -> StackState:
    """A cluster whose nodes have addresses of a subnet that was there before it."""
    outputs = {"zone": "us-west-2b", "slot_range": f"{subnet} 172.31.16.0/24"}
    row = {"urn": "urn:identity", "type": IDENTITY, "id": "1", "outputs": outputs}
    return parse_state(json.dumps({"deployment": {"resources": [{"custom": True, **row}]}}))


@pytest.mark.parametrize(
    ("state", "network", "problem"),
    [
        (in_subnet("subnet-0a1b2c3d"), {}, "the nodes' addresses have been in subnet-0a1b2c3d since"),
        (in_subnet("subnet-0a1b2c3d"), adopting("subnet-0d3c2b1a"), "addresses have been in subnet-0a1b2c3d since"),
        (state_of(), adopting("subnet-0a1b2c3d"), "vpc-0a1b2c3d: the cluster has had a network of its own"),
    ],
    ids=["out of a network", "into another one", "out of its own"],
)
def test_a_cluster_moves_neither_into_a_network_that_was_there_before_it_nor_out_of_one(
    state: StackState, network: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_other_network(state, config_of(**network), source="cluster.yaml", shown="s")
    assert problem in caught.value.problems[0]


def test_a_cluster_that_stays_in_the_network_that_it_was_made_in_is_let_through() -> None:
    config = config_of(**adopting("subnet-0a1b2c3d"))
    refuse_other_network(in_subnet("subnet-0a1b2c3d"), config, source="cluster.yaml", shown="s")


GROUP = "urn:pulumi:dev::p::clusterctl:infra:Cluster$clusterctl:infra:Capacity$aws:ec2/placementGroup:PlacementGroup::g"
OTHERS_GROUP = "urn:pulumi:dev::p::aws:ec2/placementGroup:PlacementGroup::mine"


def placed(*, group: str | None, nodes: int, birth: str = "agent=1") -> StackState:
    rows: list[dict[str, Any]] = [
        {
            "urn": f"urn:{slot}",
            "type": "aws:ec2/instance:Instance",
            "id": f"i-{slot}",
            "inputs": {"tags": {"clusterctl:slot": str(slot), "clusterctl:birth": birth}},
        }
        for slot in range(nodes)
    ]
    if group is not None:
        rows.append({"urn": group, "type": "aws:ec2/placementGroup:PlacementGroup", "id": "g"})
    return parse_state(json.dumps({"deployment": {"resources": [{"custom": True, **row} for row in rows]}}))


@pytest.mark.parametrize(
    ("group", "nodes", "placement"),
    [(GROUP, 2, "cluster"), (None, 2, "none"), (OTHERS_GROUP, 2, "none"), (GROUP, 0, "none"), (None, 0, "cluster")],
    ids=["as it is", "as it is without one", "a group of the person's own", "no node runs", "nothing is there"],
)
def test_a_placement_that_no_running_node_would_have_to_leave_is_let_through(
    group: str | None, nodes: int, placement: str
) -> None:
    wanted = a_plan(placement=placement)
    refuse_other_launch(placed(group=group, nodes=nodes), wanted, source="cluster.yaml", shown="stacks/train")


@pytest.mark.parametrize(("group", "placement"), [(GROUP, "none"), (None, "cluster")])
def test_running_nodes_neither_enter_nor_leave_a_placement_group(group: str | None, placement: str) -> None:
    wanted = a_plan(placement=placement)
    with pytest.raises(ConfigError) as caught:
        refuse_other_launch(placed(group=group, nodes=2), wanted, source="cluster.yaml", shown="stacks/train")
    assert caught.value.hint == "clusterctl down stacks/train"
    assert f"→ {placement}" in caught.value.problems[0]


@pytest.mark.parametrize(
    ("birth", "capacity", "change"),
    [("agent=1 spot-max=20", "on-demand", "spot → on-demand"), ("agent=1", "spot", "on-demand → spot")],
)
def test_running_nodes_do_not_become_spot_machines_nor_the_reverse(birth: str, capacity: str, change: str) -> None:
    state = placed(group=GROUP, nodes=2, birth=birth)
    with pytest.raises(ConfigError, match="1 change is not made on running nodes") as caught:
        refuse_other_launch(state, a_plan(capacity=capacity), source="cluster.yaml", shown="stacks/train")
    assert f"capacity: {change}: fixed when the nodes are made" in caught.value.problems[0]
    assert caught.value.hint == "clusterctl down stacks/train"


@pytest.mark.parametrize(
    ("birth", "nodes", "capacity"),
    [("agent=1 spot-max=20", 2, "spot"), ("agent=1 spot-max=20", 0, "on-demand"), ("agent=1", 2, "on-demand")],
)
def test_a_capacity_that_no_running_node_would_have_to_change_is_let_through(
    birth: str, nodes: int, capacity: str
) -> None:
    state = placed(group=GROUP, nodes=nodes, birth=birth)
    refuse_other_launch(state, a_plan(capacity=capacity), source="cluster.yaml", shown="stacks/train")


def test_both_changes_are_told_at_once() -> None:
    wanted = a_plan(capacity="spot", placement="none")
    with pytest.raises(ConfigError, match="2 changes are not made") as caught:
        refuse_other_launch(placed(group=GROUP, nodes=2), wanted, source="cluster.yaml", shown="stacks/train")
    assert len(caught.value.problems) == 2


def rehearsed_in(home: Path) -> StackState:
    row = {"urn": "urn:inventory", "type": "clusterctl:index:Inventory", "id": "train", "outputs": {"home": str(home)}}
    return parse_state(json.dumps({"deployment": {"resources": [{"custom": True, **row}]}}))


def test_a_cluster_that_is_rehearsed_in_another_home_is_changed_there(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "rehearsal").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"is rehearsed in the home .*there, and this is the home .*here") as caught:
        refuse_other_home(rehearsed_in(there), here)
    assert caught.value.hint == f"export CLUSTERCTL_HOME={there}"


def test_a_cluster_of_this_home_of_none_and_of_one_that_was_removed_is_let_through(tmp_path: Path) -> None:
    (tmp_path / "rehearsal").mkdir()
    refuse_other_home(rehearsed_in(tmp_path), tmp_path)
    refuse_other_home(rehearsed_in(tmp_path / "removed"), tmp_path)
    refuse_other_home(StackState(), tmp_path)
