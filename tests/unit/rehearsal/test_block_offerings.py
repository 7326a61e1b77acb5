"""DescribeCapacityBlockOfferings of the region: what it offers, and what AWS would refuse."""

from __future__ import annotations

from typing import Any  # parameters

import pytest

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import SmallRegion

ASKED: dict[str, Any] = {"InstanceType": "p5.48xlarge", "InstanceCount": 4, "CapacityDurationHours": 24}


def test_each_zone_offers_a_block_at_the_price_on_demand(world: SmallRegion, client: Client) -> None:
    rows = client.ec2("DescribeCapacityBlockOfferings", **ASKED)["CapacityBlockOfferings"]
    assert [row["AvailabilityZone"] for row in rows] == [
        f"us-west-2{letter}" for letter in world.behaviour.settings().zones
    ]
    assert {(row["UpfrontFee"], row["CurrencyCode"]) for row in rows} == {(f"{55.04 * 4 * 24:.4f}", "USD")}
    for row in rows:
        assert (row["EndDate"] - row["StartDate"]).total_seconds() == 24 * 3600
    later = client.ec2("DescribeCapacityBlockOfferings", **ASKED, StartDateRange=rows[1]["StartDate"])
    assert [row["CapacityBlockOfferingId"] for row in later["CapacityBlockOfferings"]] == [
        row["CapacityBlockOfferingId"] for row in rows[1:]
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"InstanceType": "g5.xlarge"},
        {"InstanceCount": 65},
        {"CapacityDurationHours": 30},
        {"CapacityDurationHours": 15 * 24},
    ],
)
def test_what_aws_refuses_is_refused(client: Client, changes: dict[str, Any]) -> None:
    assert client.ec2("DescribeCapacityBlockOfferings", **{**ASKED, **changes}) == "InvalidParameterValue"


def offerings(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.ec2("DescribeCapacityBlockOfferings", **ASKED)["CapacityBlockOfferings"]
    return found


def bought(client: Client, offering_id: str, **changes: Any) -> Any:
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "team", "Value": "vision"}]}]
    asked = {"CapacityBlockOfferingId": offering_id, "InstancePlatform": "Linux/UNIX", "TagSpecifications": tags}
    return client.ec2("PurchaseCapacityBlock", **{**asked, **changes})


def test_what_is_bought_is_what_was_offered_and_has_no_free_place_before_it_begins(client: Client) -> None:
    offer = offerings(client)[1]
    block = bought(client, offer["CapacityBlockOfferingId"])["CapacityReservation"]
    (shown,) = client.ec2("DescribeCapacityReservations")["CapacityReservations"]
    for row in (block, shown):
        assert [row[key] for key in ("State", "ReservationType", "AvailabilityZone", "TotalInstanceCount")] == [
            "scheduled",
            "capacity-block",
            offer["AvailabilityZone"],
            4,
        ]
        assert (row["StartDate"], row["EndDate"]) == (offer["StartDate"], offer["EndDate"])
        assert row["AvailableInstanceCount"] == 0
        assert row["Tags"] == [{"Key": "team", "Value": "vision"}]


def test_a_block_begins_lasts_and_is_remembered_when_it_is_over(world: SmallRegion, client: Client) -> None:
    world.behaviour.register({"blocks_begin_in_s": 600})
    bought(client, offerings(client)[0]["CapacityBlockOfferingId"])
    states = []
    for ahead_s in (0, 3600, 25 * 3600):
        world.now += ahead_s
        world.region.expire()
        (row,) = client.ec2("DescribeCapacityReservations")["CapacityReservations"]
        states.append((row["State"], row["AvailableInstanceCount"]))
    assert states == [("scheduled", 0), ("active", 4), ("expired", 4)]


def test_nobody_cancels_a_block(client: Client) -> None:
    id = bought(client, offerings(client)[0]["CapacityBlockOfferingId"])["CapacityReservation"]["CapacityReservationId"]
    assert client.ec2("CancelCapacityReservation", CapacityReservationId=id) == "OperationNotPermitted"


@pytest.mark.parametrize("id", ["cb-0123456789abcdef0", "cb-1", "", "cb-ffffffffffffffff0"])
def test_what_is_not_on_offer_is_not_sold(client: Client, id: str) -> None:
    assert bought(client, id) == "InvalidCapacityBlockOfferingId.NotFound"


def test_a_dry_run_and_other_resources_tags_buy_nothing(client: Client) -> None:
    id = offerings(client)[0]["CapacityBlockOfferingId"]
    assert bought(client, id, DryRun=True) == "DryRunOperation"
    assert bought(client, id, TagSpecifications=[{"ResourceType": "vpc", "Tags": []}]) == "InvalidParameterValue"
    assert client.ec2("DescribeCapacityReservations")["CapacityReservations"] == []
