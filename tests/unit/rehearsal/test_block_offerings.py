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
