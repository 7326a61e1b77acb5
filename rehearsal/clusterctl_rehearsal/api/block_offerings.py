"""DescribeCapacityBlockOfferings: one block in each zone, a day later in each next one, at the price on demand."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime, timedelta
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api.call import Call
from clusterctl_rehearsal.api.filters import page
from clusterctl_rehearsal.region.refusal import AwsError

BLOCK = "capacity-block"
DAY_H, WEEK_H = 24, 168
MOST_INSTANCES = 64
STARTS_AT = timedelta(hours=11, minutes=30)
"""Blocks begin and end at 11:30 UTC, unless they begin at once (EC2 User Guide, "Capacity Blocks"; 2026-11)."""


def describe_block_offerings(call: Call) -> dict[str, Any]:
    """The answer to DescribeCapacityBlockOfferings: none beyond the region's `capacity` of the type."""
    asked = call.parameters
    name, count = str(asked.get("InstanceType") or ""), int(asked.get("InstanceCount") or 1)
    hours = int(asked.get("CapacityDurationHours") or 0)
    kind = call.region.catalog.instance_type(name)
    if kind is None or BLOCK not in kind.usage_classes:
        raise AwsError("InvalidParameterValue", f"The instance type '{name}' is not supported for Capacity Blocks.")
    if not 1 <= count <= MOST_INSTANCES:
        raise AwsError("InvalidParameterValue", f"Invalid InstanceCount: {count}")
    if hours <= 0 or hours % (DAY_H if hours <= 14 * DAY_H else WEEK_H) or hours > 182 * DAY_H:
        raise AwsError("InvalidParameterValue", f"Invalid CapacityDurationHours: {hours}")
    price = call.region.catalog.price_usd_per_hour(name, call.region_name)
    settings = call.region.settings()
    has_room = settings.capacity.get(name, count) >= count
    days = enumerate(settings.zones, start=1) if has_room and price is not None else ()
    rows = [_view(call, name, count, hours, day, letter, price=price or 0.0) for day, letter in days]
    earliest = _instant(asked.get("StartDateRange"))
    shown = [row for row in rows if earliest is None or datetime.fromisoformat(row["StartDate"]) >= earliest]
    found, rest = page(shown, asked)
    return {"CapacityBlockOfferings": found, "NextToken": rest}


def _view(call: Call, name: str, count: int, hours: int, day: int, letter: str, *, price: float) -> dict[str, Any]:
    midnight = datetime.fromtimestamp(time.time(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight + timedelta(days=day) + STARTS_AT
    zone = call.region_name + letter
    digest = hashlib.sha256(f"{name} {count} {hours} {start} {zone}".encode()).hexdigest()
    return {
        "CapacityBlockOfferingId": f"cb-{digest[:17]}",
        "InstanceType": name,
        "AvailabilityZone": zone,
        "InstanceCount": count,
        "StartDate": _text(start),
        "EndDate": _text(start + timedelta(hours=hours)),
        "CapacityBlockDurationHours": hours,
        "UpfrontFee": f"{price * count * hours:.4f}",
        "CurrencyCode": "USD",
        "Tenancy": "default",
    }


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _instant(value: object) -> datetime | None:
    if value is None:
        return None
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
