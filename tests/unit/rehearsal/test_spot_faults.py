"""Notices of spot machines: what the machine reads, when it ends, and with which words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl_rehearsal.region.faults import Faults
from clusterctl_rehearsal.region.metadata import metadata_text
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types import network

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import SmallRegion

MARKET = {"instanceMarketOptions": {"marketType": "spot"}}
NOTICES = ("spot/instance-action", "spot/termination-time", "events/recommendations/rebalance")


@pytest.fixture
def spot(world: SmallRegion) -> Record:
    return world.node(2, **MARKET)


@pytest.fixture
def faults(world: SmallRegion) -> Faults:
    return faults_of(world)


def faults_of(world: SmallRegion) -> Faults:
    return Faults(instances=world.instances, behaviour=world.behaviour, catalog=world.region.catalog, stop=lambda: None)


def now(world: SmallRegion, node: Record) -> Record:
    found = world.store.get(network.INSTANCE, node.id)
    assert found is not None
    return found


def test_without_a_notice_there_is_no_page_of_one(spot: Record) -> None:
    assert [metadata_text(spot, page) for page in NOTICES] == [None, None, None]
    assert not {"spot/", "events/"} & set((metadata_text(spot, "") or "").splitlines())


def test_an_interruption_is_written_as_aws_writes_it(world: SmallRegion, spot: Record, faults: Faults) -> None:
    assert faults.do("interrupt", ["train-2"]) == "AWS takes train-2 back at 08:02:05 UTC, in 120 s"
    action, time, rebalance = [metadata_text(now(world, spot), page) for page in NOTICES]
    assert json.loads(action or "") == {"action": "terminate", "time": "2027-01-15T08:02:05Z"}
    assert (time, rebalance) == ("2027-01-15T08:02:05Z", None)


def test_an_interrupted_machine_ends_at_the_second_with_awss_reason(
    world: SmallRegion, spot: Record, faults: Faults, client: Client
) -> None:
    faults.do("interrupt", ["train-2", "30"])
    world.now += 29
    world.instances.watch()
    assert now(world, spot).state == "running"
    world.now += 1
    world.instances.watch()
    (row,) = client.ec2("DescribeInstances")["Reservations"][0]["Instances"]
    assert row["State"]["Name"] == "terminated"
    assert row["StateReason"] == {
        "Code": "Server.SpotInstanceTermination",
        "Message": "Server.SpotInstanceTermination: Spot instance termination",
    }
    assert row["StateTransitionReason"] == "Service initiated (2027-01-15 08:00:35 GMT)"


def test_the_end_comes_also_when_no_region_ran_at_its_time(tmp_path: Path) -> None:
    before = SmallRegion(tmp_path)
    node = before.node(2, **MARKET)
    faults_of(before).do("interrupt", ["train-2"])
    after = SmallRegion(tmp_path)
    after.now = before.now + 500
    after.instances.adopt()
    after.instances.watch()
    assert now(after, node).facts["reason"][0] == "Server.SpotInstanceTermination"


def test_a_notice_that_is_taken_back_ends_nothing(world: SmallRegion, spot: Record, faults: Faults) -> None:
    faults.do("interrupt", ["train-2"])
    assert faults.do("interrupt", ["train-2", "off"]) == "train-2 stays: its notice is gone"
    assert faults.do("interrupt", ["train-2", "off"]) == "train-2 stays: it has no notice"
    world.now += 500
    world.instances.watch()
    assert now(world, spot).state == "running"
    assert metadata_text(now(world, spot), NOTICES[0]) is None


def test_a_recommendation_is_shown_and_ends_nothing(world: SmallRegion, spot: Record, faults: Faults) -> None:
    assert faults.do("rebalance", ["train-2"]) == "train-2 is told that AWS may take it back soon; it lives on"
    world.now += 500
    world.instances.watch()
    assert now(world, spot).state == "running"
    text = metadata_text(now(world, spot), NOTICES[2]) or ""
    assert json.loads(text) == {"noticeTime": "2027-01-15T08:00:05Z"}


def test_the_request_of_a_machine_tells_who_ended_it(
    world: SmallRegion, spot: Record, faults: Faults, client: Client
) -> None:
    def status(node: Record) -> tuple[str, str]:
        named = {"SpotInstanceRequestIds": [node.facts["spot_request"]]}
        (row,) = client.ec2("DescribeSpotInstanceRequests", **named)["SpotInstanceRequests"]
        return row["State"], row["Status"]["Code"]

    assert status(spot) == ("active", "fulfilled")
    faults.do("interrupt", ["train-2"])
    assert status(spot) == ("active", "marked-for-termination")
    world.now += 120
    world.instances.watch()
    assert status(spot) == ("closed", "instance-terminated-no-capacity")

    again = world.node(3, **MARKET)
    client.ec2("CancelSpotInstanceRequests", SpotInstanceRequestIds=[again.facts["spot_request"]])
    assert status(again) == ("cancelled", "request-canceled-and-instance-running")
    world.instances.terminate(again)
    assert status(again) == ("cancelled", "instance-terminated-by-user")
