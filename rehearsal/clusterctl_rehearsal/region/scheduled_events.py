"""AWS's events for a machine, such as its retirement: the instance's facts, and what EC2 and the metadata show. Pure.

Codes, texts and times as in the EC2 user guide, "Scheduled events for your instances", and in the EC2 API,
InstanceStatusEvent (2026-11-26).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any  # facts and views are JSON-like

from clusterctl_rehearsal.region.record import Record

Event = dict[str, Any]
"""A fact: `id`, `code`, `not_before` and `not_after` in seconds since 1970 (None: no end), `state`."""
EVENTS = "scheduled_events"
"""The fact with an instance's events, the newest last."""
ACTIVE, COMPLETED, CANCELED = "active", "completed", "canceled"
ENDS = ("instance-retirement", "instance-stop")
REBOOTS = ("instance-reboot", "system-reboot")
DESCRIPTIONS = {
    "instance-reboot": "scheduled reboot",
    "system-reboot": "scheduled reboot",
    "system-maintenance": "scheduled maintenance",
    "instance-retirement": "The instance is running on degraded hardware",
    "instance-stop": "The instance is running on degraded hardware",
}
"""Code → text; the text of maintenance is in no documentation."""
WINDOW_S = 1000
"""From the earliest start of a reboot or of maintenance to its latest end, as in the user guide's example."""


def planned(code: str, *, id: str, at: float) -> Event:
    """An event that is still to come."""
    not_after = None if code in ENDS else at + WINDOW_S
    return {"id": f"instance-event-{id}", "code": code, "not_before": at, "not_after": not_after, "state": ACTIVE}


def events_of(record: Record) -> Sequence[Event]:
    """All events of the machine, finished ones too."""
    return list(record.facts.get(EVENTS) or ())


def turned(record: Record, code: str, state: str) -> list[Event]:
    """The machine's events, with the active ones of this code in another state."""
    events = events_of(record)
    return [
        {**event, "state": state} if (event["code"], event["state"]) == (code, ACTIVE) else event for event in events
    ]


def due(record: Record, now: float) -> Event | None:
    """The active event that is due; None if none is.

    Events are due at their start; maintenance, which does nothing here, is due at its end.
    """
    for event in events_of(record):
        is_shown_only = event["code"] not in (*ENDS, *REBOOTS)
        if event["state"] == ACTIVE and now >= event["not_after" if is_shown_only else "not_before"]:
            return event
    return None


def description(event: Event) -> str:
    """The event's text, such as `[Completed] scheduled reboot`."""
    finished = "" if event["state"] == ACTIVE else f"[{event['state'].capitalize()}] "
    return finished + DESCRIPTIONS[event["code"]]


def event_pages(record: Record) -> dict[str, str]:
    """The pages under `/latest/meta-data/events/maintenance/`, which exist only if there are such events."""
    kinds = {
        "history": [event for event in events_of(record) if event["state"] != ACTIVE],
        "scheduled": [event for event in events_of(record) if event["state"] == ACTIVE],
    }
    return {name: json.dumps([_page_row(event) for event in events]) for name, events in kinds.items() if events}


def _page_row(event: Event) -> dict[str, str]:
    end = {} if event["not_after"] is None else {"NotAfter": _written(event["not_after"])}
    return {
        "NotBefore": _written(event["not_before"]),
        "Code": event["code"],
        "Description": description(event),
        "EventId": event["id"],
        **end,
        "State": event["state"],
    }


def _written(at: float) -> str:
    """The instant as the metadata service writes it: `21 Jan 2019 09:00:43 GMT`."""
    return datetime.fromtimestamp(at, UTC).strftime("%-d %b %Y %H:%M:%S GMT")
