"""The faults of spot machines: AWS takes one back, or recommends leaving it."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from clusterctl_rehearsal.region.fault_arguments import FaultError
from clusterctl_rehearsal.region.instances import Instances
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.spot import is_spot
from clusterctl_rehearsal.region.spot_notices import REBALANCE_AT, TAKEN_BACK_AT, taken_back_at


def interrupt(instances: Instances, record: Record, notice_s: int | None) -> str:
    """Gives notice that AWS takes the machine back; None withdraws it. Raises FaultError if it is no spot machine."""
    node = _checked(record)
    if notice_s is None:
        instances.note(record, **{TAKEN_BACK_AT: None})
        had_notice = taken_back_at(record) is not None
        return f"{node} stays: its notice is gone" if had_notice else f"{node} stays: it has no notice"
    at = math.floor(instances.clock() + notice_s)
    instances.note(record, **{TAKEN_BACK_AT: at})
    return f"AWS takes {node} back at {datetime.fromtimestamp(at, UTC):%H:%M:%S} UTC, in {notice_s} s"


def rebalance(instances: Instances, record: Record) -> str:
    """Recommends leaving the machine, which runs on. Raises FaultError if it is no spot machine."""
    node = _checked(record)
    instances.note(record, **{REBALANCE_AT: math.floor(instances.clock())})
    return f"{node} is told that AWS may take it back soon; it lives on"


def _checked(record: Record) -> str:
    node = str(record.facts["node"])
    if not is_spot(record):
        raise FaultError(f"{node} is no spot machine: AWS takes back no others")
    return node
