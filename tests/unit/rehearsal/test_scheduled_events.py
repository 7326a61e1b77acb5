"""Scheduled events: how EC2 and the metadata service show them, and what comes of each at its time."""

from __future__ import annotations

import json
from typing import Any  # answers

import pytest
from clusterctl_rehearsal.machines.driver import MachineState
from clusterctl_rehearsal.region.faults import Faults
from clusterctl_rehearsal.region.metadata import metadata_text
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types import network

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import SmallRegion

SCHEDULED, HISTORY = "events/maintenance/scheduled", "events/maintenance/history"


@pytest.fixture
def node(world: SmallRegion) -> Record:
    return world.node(2)


@pytest.fixture
def faults(world: SmallRegion) -> Faults:
    return Faults(instances=world.instances, behaviour=world.behaviour, catalog=world.region.catalog, stop=lambda: None)


def now(world: SmallRegion, node: Record) -> Record:
    found = world.store.get(network.INSTANCE, node.id)
    assert found is not None
    return found


def events(client: Client, **asked: Any) -> list[dict[str, Any]]:
    return [
        event for row in client.ec2("DescribeInstanceStatus", **asked)["InstanceStatuses"] for event in row["Events"]
    ]


def pages(world: SmallRegion, node: Record) -> list[Any]:
    texts = [metadata_text(now(world, node), page) for page in (SCHEDULED, HISTORY)]
    return [None if text is None else json.loads(text) for text in texts]


def after(world: SmallRegion, seconds: float) -> None:
    world.now += seconds
    world.instances.watch()


def test_a_machine_without_events_shows_none(world: SmallRegion, node: Record, client: Client) -> None:
    assert events(client) == []
    assert pages(world, node) == [None, None]


def test_an_event_is_written_as_aws_writes_it(world: SmallRegion, node: Record, faults: Faults, client: Client) -> None:
    answer = faults.do("event", ["train-2", "system-reboot", "3600"])
    assert answer == "AWS plans system-reboot for train-2 at 2027-01-15 09:00:05 UTC, in 3600 s"
    (event,) = events(client)
    id = event["InstanceEventId"]
    assert id.removeprefix("instance-event-") != id
    assert {key: str(value) for key, value in event.items()} == {
        "InstanceEventId": id,
        "Code": "system-reboot",
        "Description": "scheduled reboot",
        "NotBefore": "2027-01-15 09:00:05+00:00",
        "NotAfter": "2027-01-15 09:16:45+00:00",
    }
    row = {
        "NotBefore": "15 Jan 2027 09:00:05 GMT",
        "Code": "system-reboot",
        "Description": "scheduled reboot",
        "EventId": id,
        "NotAfter": "15 Jan 2027 09:16:45 GMT",
        "State": "active",
    }
    assert pages(world, node) == [[row], None]


def test_a_retirement_is_told_two_weeks_before_and_has_no_latest_end(
    world: SmallRegion, node: Record, faults: Faults, client: Client
) -> None:
    faults.do("event", ["train-2", "instance-retirement"])
    (event,) = events(client)
    assert (event["Description"], "NotAfter" in event) == ("The instance is running on degraded hardware", False)
    assert event["NotBefore"].timestamp() == world.now + 14 * 86400
    assert "NotAfter" not in pages(world, node)[0][0]


@pytest.mark.parametrize(
    ("name", "value", "count"),
    [
        ("event.code", "instance-stop", 1),
        ("event.code", "instance-reboot", 0),
        ("event.description", "*degraded*", 1),
        ("event.not-before", "2027-01-29T08:00:05.000Z", 1),
        ("event.not-before-deadline", "2027-01-29T08:00:05.000Z", 0),
    ],
)
def test_machines_are_found_by_their_events(
    world: SmallRegion, node: Record, faults: Faults, client: Client, name: str, value: str, count: int
) -> None:
    faults.do("event", ["train-2", "instance-stop"])
    assert len(events(client, Filters=[{"Name": name, "Values": [value]}])) == count


@pytest.mark.parametrize("code", ["instance-retirement", "instance-stop"])
def test_a_retired_machine_ends_at_its_time_with_awss_reason(
    world: SmallRegion, node: Record, faults: Faults, client: Client, code: str
) -> None:
    faults.do("event", ["train-2", code, "60s"])
    after(world, 59)
    assert now(world, node).state == "running"
    after(world, 1)
    (row,) = client.ec2("DescribeInstances")["Reservations"][0]["Instances"]
    assert row["State"]["Name"] == "terminated"
    assert row["StateReason"]["Code"] == "Server.ScheduledStop"
    (event,) = events(client, IncludeAllInstances=True)
    assert event["Description"] == "[Completed] The instance is running on degraded hardware"


@pytest.mark.parametrize("code", ["instance-reboot", "system-reboot"])
def test_a_reboot_comes_once_at_its_time(world: SmallRegion, node: Record, faults: Faults, code: str) -> None:
    faults.do("event", ["train-2", code, "60"])
    faults.do("freeze", ["train-2"])  # a machine that is only recorded shows a reboot by going on
    after(world, 59)
    assert world.instances.room.state(now(world, node)) is MachineState.FROZEN
    after(world, 1)
    assert world.instances.room.state(now(world, node)) is MachineState.RUNNING
    scheduled, history = pages(world, node)
    assert (scheduled, history[0]["State"]) == (None, "completed")
    faults.do("freeze", ["train-2"])
    after(world, 1)
    assert world.instances.room.state(now(world, node)) is MachineState.FROZEN


def test_maintenance_is_shown_until_its_end_and_does_nothing(
    world: SmallRegion, node: Record, faults: Faults, client: Client
) -> None:
    faults.do("event", ["train-2", "system-maintenance", "60"])
    after(world, 1059)
    assert [event["Description"] for event in events(client)] == ["scheduled maintenance"]
    after(world, 1)
    assert [event["Description"] for event in events(client)] == ["[Completed] scheduled maintenance"]
    assert now(world, node).state == "running"


def test_a_cancelled_event_is_told_of_and_never_comes(
    world: SmallRegion, node: Record, faults: Faults, client: Client
) -> None:
    assert faults.do("event", ["train-2", "instance-stop", "off"]) == "train-2 has no instance-stop to come"
    faults.do("event", ["train-2", "instance-stop", "60"])
    assert faults.do("event", ["train-2", "instance-stop", "off"]) == "instance-stop of train-2 is cancelled"
    after(world, 600)
    assert now(world, node).state == "running"
    assert [event["Description"] for event in events(client)] == [
        "[Canceled] The instance is running on degraded hardware"
    ]
    assert pages(world, node)[1][0]["State"] == "canceled"


def test_planning_again_takes_the_place_of_what_was_planned(
    world: SmallRegion, node: Record, faults: Faults, client: Client
) -> None:
    faults.do("event", ["train-2", "instance-stop", "60"])
    faults.do("event", ["train-2", "instance-stop", "6000"])
    after(world, 600)
    assert now(world, node).state == "running"
    assert [row["State"] for rows in pages(world, node) for row in rows] == ["active", "canceled"]


def test_a_notice_of_a_spot_machine_and_an_event_are_in_one_folder(world: SmallRegion, faults: Faults) -> None:
    node = world.node(2, instanceMarketOptions={"marketType": "spot"})
    faults.do("event", ["train-2", "instance-stop"])
    faults.do("rebalance", ["train-2"])
    assert (metadata_text(now(world, node), "events") or "").splitlines() == ["recommendations/", "maintenance/"]


def test_ids_and_the_size_of_a_page_exclude_each_other(node: Record, client: Client) -> None:
    assert client.ec2("DescribeInstanceStatus", InstanceIds=[node.id], MaxResults=5) == "InvalidParameterCombination"
