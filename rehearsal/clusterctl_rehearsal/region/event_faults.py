"""The fault of a scheduled event: AWS schedules an event for a machine, or cancels it."""

from __future__ import annotations

import math
import secrets
from datetime import UTC, datetime

from clusterctl_rehearsal.region.instances import Instances
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.scheduled_events import CANCELED, EVENTS, events_of, planned, turned


def plan_event(instances: Instances, record: Record, code: str, in_s: int | None) -> str:
    """Plans an event in `in_s` seconds, instead of one to come with the same code; None only cancels that one."""
    node = str(record.facts["node"])
    others = turned(record, code, CANCELED)
    had = others != events_of(record)
    if in_s is None:
        instances.note(record, **{EVENTS: others})
        return f"{code} of {node} is cancelled" if had else f"{node} has no {code} to come"
    at = math.floor(instances.clock() + in_s)
    event = planned(code, id=secrets.token_hex(9)[1:], at=at)
    instances.note(record, **{EVENTS: [*others, event]})
    return f"AWS plans {code} for {node} at {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC, in {in_s} s"
