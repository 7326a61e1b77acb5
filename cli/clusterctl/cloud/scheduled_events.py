"""What AWS plans to do to a cluster's machines, such as a reboot or a retirement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # EC2's answers: typed dictionaries with every key optional

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

IDS_A_CALL = 100
"""As many as DescribeInstanceStatus takes by id (EC2 API reference; 2026-11-26)."""
OVER = ("[completed]", "[canceled]")
"""How the description of a past event begins, which AWS still shows for up to a week (EC2 API,
InstanceStatusEvent, and EC2 user guide, "Scheduled events for your instances"; 2026-11-26)."""


@dataclass(frozen=True, kw_only=True)
class ScheduledEvent:
    """One event that AWS plans for one machine, or that is under way."""

    instance_id: str
    event_id: str | None
    code: str
    """`instance-reboot`, `system-reboot`, `system-maintenance`, `instance-retirement`, `instance-stop`."""
    description: str
    not_before: datetime | None
    """The earliest time at which it begins."""
    not_after: datetime | None
    """The latest time at which it ends; retirements have none."""
    start_deadline: datetime | None
    """Until when it can be put off; None if it cannot."""


def scheduled_events_of(clients: Clients, instance_ids: Sequence[str]) -> tuple[ScheduledEvent, ...]:
    """The events of these machines, as far as they run. Raises CloudError."""
    found = list[ScheduledEvent]()
    with aws_errors("asking what AWS plans for the machines"):
        for start in range(0, len(instance_ids), IDS_A_CALL):
            ids = list(instance_ids[start : start + IDS_A_CALL])
            pages = clients.ec2.get_paginator("describe_instance_status").paginate(InstanceIds=ids)
            found += [event for page in pages for row in page["InstanceStatuses"] for event in events_in(row)]
    return tuple(found)


def events_in(row: Mapping[str, Any]) -> tuple[ScheduledEvent, ...]:
    """The events in one row of DescribeInstanceStatus that are not over. Pure."""
    return tuple(
        ScheduledEvent(
            instance_id=row["InstanceId"],
            event_id=event.get("InstanceEventId"),
            code=event.get("Code") or "event",
            description=event.get("Description") or "",
            not_before=event.get("NotBefore"),
            not_after=event.get("NotAfter"),
            start_deadline=event.get("NotBeforeDeadline"),
        )
        for event in row.get("Events") or ()
        if not (event.get("Description") or "").strip().lower().startswith(OVER)
    )
