"""What a configuration and a stack's settings change in the resources of the Cluster component."""

from __future__ import annotations

from dataclasses import replace
from typing import Any  # configurations as YAML gives them

import pulumi
import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.components.refusal import PlanRefused
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.plan.live_facts import live_facts_hash

from tests.unit.infra.components.recorded_program import (
    INSTANCE,
    LAUNCH_TEMPLATE,
    NOW,
    Recording,
    cluster_program,
    graph,
    record,
)
from tests.unit.infra.plan.plan_cases import a_config


def test_zero_nodes_keep_the_network_and_reserve_nothing() -> None:
    recording = record(cluster_program(down=True))
    assert recording.of_type(INSTANCE) == recording.of_type(LAUNCH_TEMPLATE) == []
    assert recording.of_type("aws:ec2/capacityReservation:CapacityReservation") == []
    assert recording.one("aws:ec2/vpc:Vpc").name == "train-vpc"
    assert recording.one("clusterctl:index:Membership").inputs["members"] == []


def test_nodes_that_outlived_their_reservation_get_no_other_and_are_not_replaced(four_nodes: Recording) -> None:
    recording = record(cluster_program(unreserved=True))
    assert recording.of_type("aws:ec2/capacityReservation:CapacityReservation") == []
    template = recording.one(LAUNCH_TEMPLATE, "train-0").inputs
    assert "capacityReservationSpecification" not in template
    assert template["placement"] == four_nodes.one(LAUNCH_TEMPLATE, "train-0").inputs["placement"]
    triggers = [
        [row.request.replacement_trigger.string_value for row in each.of_type(INSTANCE)]
        for each in (recording, four_nodes)
    ]
    assert triggers[0] == triggers[1] != []


def test_a_cluster_past_its_caps_can_still_be_taken_down() -> None:
    caps = {"price_usd_per_hour": 1}
    assert record(cluster_program(down=True, caps=caps)).of_type(INSTANCE) == []


def test_without_a_placement_group_there_is_none_anywhere() -> None:
    recording = record(cluster_program(placement="none"))
    assert recording.of_type("aws:ec2/placementGroup:PlacementGroup") == []
    assert "placement" not in recording.one(LAUNCH_TEMPLATE, "train-0").inputs
    assert "placementGroup" not in recording.one(INSTANCE, "train-0").inputs
    assert "placementGroupArn" not in recording.one("aws:ec2/capacityReservation:CapacityReservation").inputs


def test_people_with_keys_of_their_own_need_no_key_pair() -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDF5Enku12zUwBW5ahhJptZaLxt91pQw1BKukbxF9+fA ada"
    access = {"mode": "public", "ssh_from": ["203.0.113.7/32"], "authorized_keys": [key]}
    recording = record(cluster_program(access=access))
    assert recording.of_type("aws:ec2/keyPair:KeyPair") == []
    assert "keyName" not in recording.one(LAUNCH_TEMPLATE, "train-0").inputs
    assert "login_key" not in recording.one("clusterctl:index:Inventory").inputs


def test_a_zone_that_was_asked_for_is_taken_and_nobody_is_asked_for_offerings() -> None:
    recording = record(cluster_program(zone="us-west-2a", image="ami-0aaaaaaaaaaaaaaa0"))
    identity = recording.one("clusterctl:index:Identity").inputs
    assert (identity["zone_candidate"], identity["image_candidate"]) == ("us-west-2a", "ami-0aaaaaaaaaaaaaaa0")
    assert recording.invokes == ["aws:index/getCallerIdentity:getCallerIdentity"]


def test_of_the_zones_that_offer_the_type_the_first_that_is_no_local_zone_is_taken(four_nodes: Recording) -> None:
    assert four_nodes.one("clusterctl:index:Identity").inputs["zone_candidate"] == "us-west-2b"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"access": {"mode": "public"}}, ["1 problem, nothing was changed", "access.ssh_from"]),
        ({"caps": {"price_usd_per_hour": 1}, "access": {"mode": "public"}}, ["2 problems", "$55.04", "ssh_from"]),
    ],
)
def test_a_plan_with_errors_is_refused_before_anything_is_asked_for(changes: dict[str, Any], words: list[str]) -> None:
    recording = Recording()
    with pytest.raises(PlanRefused) as caught:
        record(cluster_program(**changes), recording)
    assert (recording.resources, recording.invokes) == ([], [])
    assert isinstance(caught.value, pulumi.RunError)
    assert all(word in str(caught.value) for word in words)


def test_the_budget_s_end_is_everywhere_the_same() -> None:
    recording = record(cluster_program(caps={"budget_usd": 500}))
    deadline = recording.exported["deadline"]
    membership = recording.one("clusterctl:index:Membership").inputs
    assert membership["deadline"] == deadline == "2026-03-01T14:16:11+00:00"
    assert recording.one(INSTANCE, "train-0").inputs["tags"]["clusterctl:deadline"] == "2026-03-01T14:16:11Z"


def test_the_account_of_earlier_machines_moves_the_deadline() -> None:
    earlier = Span(
        slot=0, instance_id="i-0", started_at=NOW.replace(hour=2), ended_at=NOW.replace(hour=6), price_usd_per_hour=55
    )
    program = cluster_program(caps={"budget_usd": 500}, ledger=Ledger(spans=(earlier,)))
    assert record(program).exported["deadline"] < "2026-03-01T14:16:11+00:00"


@pytest.mark.parametrize("changes", [{"env": {"A": "2"}}, {"caps": {"dead_man": "30m"}}])
def test_what_running_nodes_are_told_makes_a_new_generation(changes: dict[str, Any]) -> None:
    assert live_facts_hash(a_config()) == live_facts_hash(a_config(caps={"runtime": "3h"}))
    assert live_facts_hash(a_config(**changes)) != live_facts_hash(a_config())


def test_spot_machines_are_asked_for_once_at_their_maximum_price_and_nothing_is_reserved(four_nodes: Recording) -> None:
    recording = record(cluster_program(capacity="spot", caps={"price_usd_per_hour": 20}))
    templates = recording.of_type(LAUNCH_TEMPLATE)
    assert len(templates) == 4
    for template in templates:
        assert template.inputs["instanceMarketOptions"] == {
            "marketType": "spot",
            "spotOptions": {
                "maxPrice": "20",
                "spotInstanceType": "one-time",
                "instanceInterruptionBehavior": "terminate",
            },
        }
        assert "capacityReservationSpecification" not in template.inputs
        assert template.inputs["placement"] == {"groupName": "clusterctl-0123456789ab"}
    assert recording.one("clusterctl:index:Membership").inputs["node_price_usd_per_hour"] == 20
    assert recording.exported["capacity"] == "spot"
    assert all("instanceMarketOptions" not in row.inputs for row in four_nodes.of_type(LAUNCH_TEMPLATE))


@pytest.mark.parametrize("capacity", ["spot", "on-demand"])
def test_the_identity_is_told_how_machines_are_launched_while_there_are_some(capacity: str) -> None:
    launch = record(cluster_program(capacity=capacity)).one("clusterctl:index:Identity").inputs["launch"]
    assert launch == {"placement": "cluster", "capacity": capacity}
    assert "launch" not in record(cluster_program(capacity=capacity, down=True)).one("clusterctl:index:Identity").inputs


def test_but_for_the_reservation_a_spot_cluster_is_made_of_the_same_resources(four_nodes: Recording) -> None:
    reservation = "CapacityReservation train-reservation"
    usual = [row for row in graph(four_nodes) if not row["urn"].endswith("::train-reservation")]
    for row in usual:
        row["dependencies"] = [name for name in row["dependencies"] if name != reservation]
    assert graph(record(cluster_program(capacity="spot"))) == usual


def test_a_maximum_that_nobody_knows_is_left_to_aws() -> None:
    no_prices = replace(load_catalog(), prices={})
    recording = record(cluster_program(capacity="spot", catalog=no_prices))
    options = recording.one(LAUNCH_TEMPLATE, "train-0").inputs["instanceMarketOptions"]
    assert options["spotOptions"] == {"spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate"}


def test_a_capacity_block_that_is_yet_to_be_found_is_not_looked_for_by_plain_pulumi() -> None:
    with pytest.raises(
        PlanRefused, match="a capacity block to be found: not looked up yet, and plain pulumi up does not"
    ):
        record(cluster_program(capacity_block={"find": {"hours": 24}}))
