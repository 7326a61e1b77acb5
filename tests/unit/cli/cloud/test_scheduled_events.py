"""What AWS plans for machines: read from its answers, and asked for in portions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # what boto3 gives and takes

import pytest
from clusterctl.cloud.scheduled_events import IDS_A_CALL, ScheduledEvent, events_in, scheduled_events_of
from clusterctl_rehearsal.region.faults import Faults

from tests.unit.cli.cloud.fake_clients import FakeClients
from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import SmallRegion

AT, END, LATEST = (datetime(2026, 12, day, 10, tzinfo=UTC) for day in (1, 2, 3))
WHOLE = {
    "InstanceEventId": "instance-event-0d59937288b749b32",
    "Code": "system-reboot",
    "Description": "The instance is scheduled for a reboot",
    "NotBefore": AT,
    "NotAfter": END,
    "NotBeforeDeadline": LATEST,
}


def test_an_event_is_read_whole() -> None:
    assert events_in({"InstanceId": "i-1", "Events": [WHOLE]}) == (
        ScheduledEvent(
            instance_id="i-1",
            event_id="instance-event-0d59937288b749b32",
            code="system-reboot",
            description="The instance is scheduled for a reboot",
            not_before=AT,
            not_after=END,
            start_deadline=LATEST,
        ),
    )


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        ({}, []),
        ({"Events": None}, []),
        ({"Events": []}, []),
        ({"Events": [{"Code": "instance-stop"}]}, ["instance-stop"]),
        ({"Events": [{}]}, ["event"]),
        ({"Events": [{"Code": "a-new-one"}, WHOLE]}, ["a-new-one", "system-reboot"]),
        ({"Events": [{**WHOLE, "Description": "[Completed] scheduled reboot"}]}, []),
        ({"Events": [{**WHOLE, "Description": "[Canceled] scheduled reboot"}, WHOLE]}, ["system-reboot"]),
        ({"Events": [{**WHOLE, "Description": "scheduled reboot, not [Completed]"}]}, ["system-reboot"]),
    ],
)
def test_events_that_are_over_are_left_out_and_what_aws_does_not_say_is_no_error(
    row: dict[str, Any], codes: list[str]
) -> None:
    assert [event.code for event in events_in({"InstanceId": "i-1", **row})] == codes


def test_what_a_rehearsed_region_answers_is_read_as_awss_answer(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path)
    node = world.node(2)
    faults = Faults(
        instances=world.instances, behaviour=world.behaviour, catalog=world.region.catalog, stop=lambda: None
    )
    faults.do("event", ["train-2", "system-reboot", "600"])
    faults.do("event", ["train-2", "system-reboot", "off"])
    faults.do("event", ["train-2", "instance-retirement", "3600"])
    (row,) = Client(world).ec2("DescribeInstanceStatus", InstanceIds=[node.id])["InstanceStatuses"]
    (event,) = events_in(row)
    at = datetime.fromtimestamp(world.now + 3600, UTC)
    assert (event.instance_id, event.code, event.not_before) == (node.id, "instance-retirement", at)


class Statuses:
    """A paginator of DescribeInstanceStatus; each machine has an event."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def get_paginator(self, operation: str) -> Statuses:
        assert operation == "describe_instance_status"
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        ids = asked["InstanceIds"]
        self.asked.append(ids)
        for id in ids:
            yield {"InstanceStatuses": [{"InstanceId": id, "Events": [WHOLE]}]}


def test_machines_are_asked_for_in_portions_of_so_many_as_aws_takes() -> None:
    statuses, ids = Statuses(), [f"i-{number}" for number in range(IDS_A_CALL + 1)]
    found = scheduled_events_of(FakeClients(ec2=statuses), ids)
    assert [len(asked) for asked in statuses.asked] == [100, 1]
    assert [event.instance_id for event in found] == ids
