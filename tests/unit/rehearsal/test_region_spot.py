"""Spot machines in the region: what AWS refuses, shows and bills of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.bill import bill, billed_things
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.metadata import metadata_text

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import EVERYTHING, REGION, SmallRegion

SPOT_USD_PER_HOUR = 12.6935
"""Of a p5.48xlarge in us-west-2, in the catalog."""
OPTIONS = {"maxPrice": "20", "spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate"}
RESERVED = {**EVERYTHING[CAPACITY_RESERVATION], "instanceMatchCriteria": "targeted"}


def market(**options: Any) -> dict[str, Any]:
    """Launch template data that asks for a spot machine, its options changed by `options`."""
    return {"instanceMarketOptions": {"marketType": "spot", "spotOptions": {**OPTIONS, **options}}}


def into(reservation_id: str) -> dict[str, Any]:
    target = {"capacityReservationTarget": {"capacityReservationId": reservation_id}}
    return {"capacityReservationSpecification": target}


def test_a_spot_machine_is_described_as_aws_does(world: SmallRegion, client: Client) -> None:
    world.node(2, **market())
    asked = [{"Name": "instance-lifecycle", "Values": ["spot"]}]
    row = client.ec2("DescribeInstances", Filters=asked)["Reservations"][0]["Instances"][0]
    assert row["InstanceLifecycle"] == "spot"
    assert re.fullmatch(r"sir-[a-z0-9]{8}", row["SpotInstanceRequestId"])


def test_an_on_demand_machine_has_no_lifecycle_and_no_spot_request(world: SmallRegion, client: Client) -> None:
    node = world.node()
    row = client.ec2("DescribeInstances")["Reservations"][0]["Instances"][0]
    assert not {"InstanceLifecycle", "SpotInstanceRequestId"} & set(row)
    assert metadata_text(node, "instance-life-cycle") == "on-demand"
    assert "instanceLifecycle" not in (world.region.read(node.token, node.id) or {})


def test_the_provider_reads_the_request_back(world: SmallRegion) -> None:
    node = world.node(**market())
    shown = world.region.read(node.token, node.id) or {}
    assert shown["instanceLifecycle"] == "spot"
    assert shown["spotInstanceRequestId"] == node.facts["spot_request"]
    assert shown["instanceMarketOptions"] == {"marketType": "spot", "spotOptions": OPTIONS}


def test_the_machine_reads_that_it_is_spot(world: SmallRegion) -> None:
    assert metadata_text(world.node(**market()), "instance-life-cycle") == "spot"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"maxPrice": "12.69"},
            (
                "SpotMaxPriceTooLow: Your Spot request price of 12.69 is lower than the minimum required Spot request "
                "fulfillment price of 12.6935."
            ),
        ),
        ({"maxPrice": "cheap"}, "InvalidParameterValue: Invalid value 'cheap' for MaxPrice."),
        ({"maxPrice": "0"}, "InvalidParameterValue: Invalid value '0' for MaxPrice."),
        ({"maxPrice": "nan"}, "InvalidParameterValue: Invalid value 'nan' for MaxPrice."),
        (
            {"instanceInterruptionBehavior": "stop"},
            (
                "InvalidParameterCombination: The request with type 'one-time' is not supported when "
                "instanceInterruptionBehavior is set to 'stop'."
            ),
        ),
        (
            {"validUntil": "2027-01-31T00:00:00Z"},
            (
                "InvalidParameterCombination: The parameter validUntil cannot be specified when the SpotRequestType is "
                "set to 'one-time'."
            ),
        ),
    ],
)
def test_what_aws_refuses_of_a_spot_request_is_refused(
    world: SmallRegion, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(AwsError) as caught:
        world.node(**market(**options))
    assert str(caught.value) == message


def test_a_maximum_as_high_as_the_price_is_enough_and_without_one_any_price_is_paid(world: SmallRegion) -> None:
    _, subnet, group = world.network()
    for slot, price in enumerate((str(SPOT_USD_PER_HOUR), "")):
        assert world.launch(world.template(subnet, group, slot, **market(maxPrice=price))).state == "running"


def test_where_the_price_is_not_known_every_maximum_will_do(world: SmallRegion) -> None:
    assert world.node(**market(maxPrice="0.01"), instanceType="p5.4xlarge").state == "running"


def test_a_persistent_request_is_beyond_the_stand_in(world: SmallRegion) -> None:
    with pytest.raises(StandInRefusal, match="does not know persistent spot requests yet"):
        world.node(**market(spotInstanceType="persistent"))


def test_a_spot_machine_takes_no_reserved_place_and_names_none(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path, capacity={"p5.48xlarge": 3})
    open_one = world.make(CAPACITY_RESERVATION, **{**EVERYTHING[CAPACITY_RESERVATION], "instanceCount": 2})
    _, subnet, group = world.network()
    assert world.launch(world.template(subnet, group, 0, **market())).facts["reservation"] is None
    with pytest.raises(AwsError) as caught:
        world.launch(world.template(subnet, group, 1, **market()))
    assert str(caught.value) == (
        "InsufficientInstanceCapacity: There is no Spot capacity available that matches your request."
    )
    with pytest.raises(AwsError, match="InvalidParameterCombination"):
        world.launch(world.template(subnet, group, 2, **market(), **into(open_one.id)))
    only = {"capacityReservationSpecification": {"capacityReservationPreference": "capacity-reservations-only"}}
    with pytest.raises(AwsError, match="InvalidParameterCombination"):
        world.launch(world.template(subnet, group, 3, **market(), **only))


def test_a_spot_machine_is_in_the_way_of_a_reservation(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path, capacity={"p5.48xlarge": 2})
    world.node(**market())
    with pytest.raises(AwsError, match="InsufficientInstanceCapacity"):
        world.make(CAPACITY_RESERVATION, **{**RESERVED, "instanceCount": 2})


def test_spot_machines_have_a_quota_of_their_own(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path, quotas={"vcpus": 192, "spot_vcpus": 383})
    _, subnet, group = world.network()
    world.launch(world.template(subnet, group, 0, **market()))
    with pytest.raises(AwsError, match="MaxSpotInstanceCountExceeded: Max spot instance count exceeded"):
        world.launch(world.template(subnet, group, 1, **market()))
    assert world.launch(world.template(subnet, group, 2)).state == "running", "on demand is counted for itself"


def test_a_spot_machine_bills_the_spot_price_also_when_it_is_gone(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path)
    node = world.node(**market())
    world.now += 3600
    for _ in range(2):
        rows = bill(billed_things(world.store.journal.rows(), world.store.live()), load_catalog(), until=world.now)
        assert [row.usd for row in rows if row.kind == "Instance"] == [pytest.approx(SPOT_USD_PER_HOUR)]
        world.region.instances.terminate(node)
        world.now += 60


def test_the_price_history_has_the_price_of_today_in_each_zone(world: SmallRegion, client: Client) -> None:
    asked = {"InstanceTypes": ["p5.48xlarge"], "ProductDescriptions": ["Linux/UNIX"], "StartTime": "2027-01-15"}
    rows = client.ec2("DescribeSpotPriceHistory", **asked)["SpotPriceHistory"]
    assert {(row["InstanceType"], row["SpotPrice"]) for row in rows} == {("p5.48xlarge", "12.693500")}
    assert [row["AvailabilityZone"] for row in rows] == [f"{REGION}{letter}" for letter in "abc"]
    assert all(row["Timestamp"].year == 2026 for row in rows)


def test_a_request_may_be_cancelled_and_its_machine_runs_on(world: SmallRegion, client: Client) -> None:
    node = world.node(**market())
    named = {"SpotInstanceRequestIds": [node.facts["spot_request"]]}
    (row,) = client.ec2("DescribeSpotInstanceRequests", **named)["SpotInstanceRequests"]
    assert (row["InstanceId"], row["State"], row["Status"]["Code"]) == (node.id, "active", "fulfilled")
    (cancelled,) = client.ec2("CancelSpotInstanceRequests", **named)["CancelledSpotInstanceRequests"]
    assert cancelled["State"] == "cancelled"
    (row,) = client.ec2("DescribeSpotInstanceRequests", **named)["SpotInstanceRequests"]
    assert (row["State"], [machine.state for machine in world.store.live(node.token)]) == ("cancelled", ["running"])


@pytest.mark.parametrize("call", ["DescribeSpotInstanceRequests", "CancelSpotInstanceRequests"])
def test_whether_one_may_read_and_cancel_requests_is_answered(client: Client, call: str) -> None:
    assert client.ec2(call, DryRun=True, SpotInstanceRequestIds=["sir-00000000"]) == "DryRunOperation"


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"InstanceTypes": ["p5.4xlarge"]}, 0),
        ({"ProductDescriptions": ["Windows"]}, 0),
        ({"AvailabilityZone": "us-west-2b"}, 1),
        ({"Filters": [{"Name": "availability-zone", "Values": ["us-west-2c"]}]}, 1),
    ],
)
def test_a_price_history_holds_only_what_was_asked_for(client: Client, asked: dict[str, Any], count: int) -> None:
    rows = client.ec2("DescribeSpotPriceHistory", **{"InstanceTypes": ["p5.48xlarge"], **asked})["SpotPriceHistory"]
    assert len(rows) == count
