"""What a plan says of slots, addresses, interfaces, tags and user-data."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl.lifecycle.plan_view import scripts_line
from clusterctl_bootstrap.render import USER_DATA_LIMIT_BYTES
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.network import slot_capacity
from clusterctl_infra.plan.nodes import node_access, node_plan, user_data
from clusterctl_infra.plan.planner import plan, refuse_errors
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, IDENTITY, a_config, a_plan, problems_of

FEW = 25
"""Examples of a property that needs whole plans, 10 ms each."""
PREFIXES = st.integers(min_value=16, max_value=28)
NODES = st.integers(min_value=1, max_value=40)
PRIVATE: dict[str, Any] = {"access": {"mode": "private"}}


def network(prefix: int) -> dict[str, str]:
    """A node subnet of that size in a network that holds it."""
    return {
        "vpc_cidr": "10.0.0.0/16",
        "node_subnet_cidr": f"10.0.0.0/{max(prefix, 17)}",
        "service_subnet_cidr": "10.0.128.0/24",
    }


def what_stays(made: ClusterPlan) -> list[tuple[object, ...]]:
    """All of each slot that the number of nodes must not touch."""
    return [
        (slot.name, slot.private_ip, slot.interfaces, slot.host_public_key, slot.replacement_trigger)
        for slot in made.slots
    ]


@settings(max_examples=FEW)
@given(prefix=PREFIXES, nodes=NODES)
def test_addresses_are_unique_inside_the_slot_range_and_never_aws_s_own(prefix: int, nodes: int) -> None:
    made = a_plan(nodes=nodes, network=network(prefix), **PRIVATE)
    slot_range, subnet = IPv4Network(made.network.slot_cidr), IPv4Network(made.network.node_subnet_cidr)
    if nodes > slot_capacity(made.network.slot_cidr):
        assert "network.node_subnet_cidr" in problems_of(made)
        return
    addresses = [IPv4Address(slot.private_ip) for slot in made.slots]
    reserved = {*list(subnet)[:4], subnet.broadcast_address}
    assert len(set(addresses)) == nodes
    assert all(address in slot_range and address not in reserved for address in addresses)
    assert problems_of(made) == {}


@settings(max_examples=FEW)
@given(nodes=NODES, more=st.integers(min_value=1, max_value=5))
def test_one_node_more_or_fewer_changes_no_other_slot(nodes: int, more: int) -> None:
    small, large = a_plan(nodes=nodes, **PRIVATE), a_plan(nodes=nodes + more, **PRIVATE)
    assert what_stays(large)[:nodes] == what_stays(small)


@settings(max_examples=FEW)
@given(nodes=NODES)
def test_the_same_configuration_gives_the_same_plan(nodes: int) -> None:
    assert a_plan(nodes=nodes, **PRIVATE) == a_plan(nodes=nodes, **PRIVATE)


def test_a_plan_an_hour_later_is_the_same_plan() -> None:
    assert a_plan(now=BORN + timedelta(hours=1)) == a_plan()


def test_user_data_is_the_same_an_hour_later_and_other_for_each_slot() -> None:
    config = a_config()
    now, later = a_plan(), a_plan(now=BORN + timedelta(hours=1))
    assert user_data(config, now, IDENTITY, 1) == user_data(config, later, IDENTITY, 1)
    assert user_data(config, now, IDENTITY, 1) != user_data(config, now, IDENTITY, 2)


def test_the_size_of_user_data_is_that_of_the_largest_slot() -> None:
    config = a_config()
    made = a_plan()
    sizes = [len(user_data(config, made, IDENTITY, slot)) for slot in range(4)]
    assert abs(max(sizes) - made.user_data_bytes) <= 16  # the keys differ, and compress a few bytes better or worse
    assert made.user_data_bytes < USER_DATA_LIMIT_BYTES


def test_scripts_are_delivered_only_where_user_data_has_no_room_for_them() -> None:
    def planned(content: str) -> ClusterPlan:
        config = a_config(scripts=["setup.sh", "tune.sh"])
        scripts = tuple(script.with_content(content) for script in config.scripts)
        config = config.model_copy(update={"scripts": scripts})
        return plan(config, CATALOG, identity=IDENTITY, ledger=Ledger(), now=BORN)

    short, long = planned("id\n"), planned("".join(str(number**7 % 9973) for number in range(9000)))
    assert (short.delivered_scripts, long.delivered_scripts) == ((), ("setup.sh", "tune.sh"))
    assert problems_of(long) == {}
    assert long.user_data_bytes < USER_DATA_LIMIT_BYTES
    assert scripts_line(long).startswith("setup.sh, tune.sh: no room in user-data; clusterctl up sends them ")
    assert short.slots[0].replacement_trigger != long.slots[0].replacement_trigger, "a changed script, another machine"


@pytest.mark.parametrize(
    ("changes", "identity_changes"),
    [
        ({"instance_type": "p5e.48xlarge"}, {}),
        ({"fabric": "none"}, {}),
        ({"network": {"node_subnet_cidr": "10.0.32.0/20"}}, {}),
        ({}, {"image_id": "ami-00000000000000001"}),
        ({}, {"seed": bytes(32)}),
    ],
)
def test_what_makes_a_machine_another_one_changes_the_trigger(
    changes: dict[str, Any], identity_changes: dict[str, Any]
) -> None:
    before = a_plan().slots[2].replacement_trigger
    after = a_plan(identity=dataclasses.replace(IDENTITY, **identity_changes), **changes).slots[2].replacement_trigger
    assert after != before


@pytest.mark.parametrize(
    ("changes", "identity_changes"),
    [
        ({"nodes": 2}, {}),
        ({"caps": {"runtime": "3h", "budget_usd": 5000}}, {}),
        ({"env": {"A": "1"}}, {}),
        ({"tags": {"team": "vision"}}, {}),
        ({"placement": "none"}, {}),
        ({"imds": "users"}, {}),
        ({"access": {"mode": "public", "ssh_from": ["198.51.100.0/24"]}}, {}),
        ({"image": "ami-0fffffffffffffff0"}, {}),
        ({}, {"run": 2, "started_at": BORN + timedelta(days=1)}),
        ({}, {"owner": "grace"}),
    ],
)
def test_what_a_machine_can_live_with_leaves_the_trigger_alone(
    changes: dict[str, Any], identity_changes: dict[str, Any]
) -> None:
    before = a_plan().slots[1].replacement_trigger
    after = a_plan(identity=dataclasses.replace(IDENTITY, **identity_changes), **changes).slots[1].replacement_trigger
    assert after == before


def test_only_the_primary_interface_has_an_address() -> None:
    interfaces = a_plan().slots[3].interfaces
    assert (len(interfaces), interfaces[0].private_ip) == (33, "10.0.8.3")
    assert {interface.private_ip for interface in interfaces[1:]} == {None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "elastic"),
        ({"fabric": "none"}, "automatic"),
        ({"instance_type": "m5.large"}, "automatic"),
        ({"access": {"mode": "private"}}, "none"),
    ],
)
def test_public_addresses_are_of_the_kind_aws_has_for_the_interfaces(changes: dict[str, Any], expected: str) -> None:
    assert a_plan(**changes).network.public_addresses == expected


def test_tags_name_the_cluster_and_a_person_s_tags_stay() -> None:
    made = a_plan(tags={"team": "vision"})
    assert made.tags == {
        "team": "vision",
        "clusterctl:id": "0123456789ab",
        "clusterctl:name": "train",
        "clusterctl:owner": "ada",
        "clusterctl:deadline": "2026-03-02T12:00:00Z",
    }
    assert made.slots[2].tags == {**made.tags, "Name": "train-2", "clusterctl:slot": "2"}


def test_a_cluster_that_is_down_has_no_slots_and_no_price_for_them() -> None:
    made = a_plan(down=True)
    assert made.tags["clusterctl:deadline"] == "none"
    assert (made.slots, made.price.nodes_usd_per_hour, problems_of(made)) == ((), 0.0, {})
    assert len(made.interface_layout) == 33


def test_a_node_is_told_its_own_facts_and_the_size_of_the_cluster() -> None:
    config = a_config(env={"NCCL_DEBUG": "INFO"})
    made = a_plan(env={"NCCL_DEBUG": "INFO"})
    node = node_plan(config, made, 2)
    assert (node.slot, node.rank, node.nodes, node.gpus_per_node, node.generation) == (2, 2, 4, 8, 0)
    assert (node.fabric, node.efa_interfaces, node.slot_cidr) == ("efa", 32, "10.0.8.0/21")
    assert (node.deadline, dict(node.env)) == (made.deadline.at, {"NCCL_DEBUG": "INFO"})


def test_without_keys_of_their_own_people_log_in_with_the_derived_one() -> None:
    own = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDF5Enku12zUwBW5ahhJptZaLxt91pQw1BKukbxF9+fA ada"
    derived = node_access(a_config(), a_plan(), IDENTITY, 0).authorized_keys
    given_keys = a_config(access={"mode": "public", "ssh_from": ["203.0.113.7/32"], "authorized_keys": [own]})
    assert len(derived) == 1
    assert node_access(given_keys, a_plan(), IDENTITY, 0).authorized_keys == (own,)


def test_a_configuration_that_breaks_its_own_rules_has_no_plan() -> None:
    with pytest.raises(ConfigError) as caught:
        a_plan(region="us-west-9", image="ami-xyz")
    assert caught.value.message == "cluster train: 2 problems, nothing was changed"
    assert any("us-west-9" in line for line in caught.value.problems)


def test_errors_are_refused_all_at_once_and_warnings_pass() -> None:
    made = a_plan(access={"mode": "public"}, caps={"price_usd_per_hour": 1})
    with pytest.raises(ConfigError) as caught:
        refuse_errors(made)
    assert len(caught.value.problems) == 2
    refuse_errors(a_plan(access={"mode": "public", "ssh_from": ["0.0.0.0/0"]}))
