"""Capacity blocks and their purchase: one on offer in each zone, each a day after the last, at on-demand prices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call
from clusterctl_rehearsal.api.ec2_views import tagged
from clusterctl_rehearsal.api.filters import page
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.journal import UPFRONT_USD
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties, Record
from clusterctl_rehearsal.region.types.row import random_hex
from clusterctl_rehearsal.region.types.tags import check_tags

BLOCK_USAGE_CLASS = "capacity-block"
DAY_H, WEEK_H = 24, 168
MOST_INSTANCES = 64
_ID = re.compile(r"cb-([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{8})([0-9a-f])")
STARTS_AT = timedelta(hours=11, minutes=30)
"""Blocks begin and end at 11:30 UTC, unless they begin at once (EC2 User Guide, "Capacity Blocks"; 2026-11)."""


def describe_block_offerings(call: Call) -> dict[str, Any]:
    """The answer to DescribeCapacityBlockOfferings; empty if the `capacity` setting has fewer machines than wanted."""
    asked = call.parameters
    name, count = str(asked.get("InstanceType") or ""), int(asked.get("InstanceCount") or 1)
    hours = int(asked.get("CapacityDurationHours") or 0)
    kind = call.region.catalog.instance_type(name)
    if kind is None or BLOCK_USAGE_CLASS not in kind.usage_classes:
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


def purchase_block(call: Call) -> dict[str, Any]:
    """The answer to PurchaseCapacityBlock, which records the block with its price: AWS bills that at once, and nothing
    for the block later (EC2 User Guide, "Capacity Blocks pricing and billing"; 2026-11-26).
    """
    asked = call.parameters
    if asked.get("DryRun"):
        raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)
    offer = _offer(call, str(asked.get("CapacityBlockOfferingId") or ""))
    specifications = asked.get("TagSpecifications") or []
    for row in specifications:
        if row.get("ResourceType") != "capacity-reservation":
            raise AwsError(
                "InvalidParameterValue", f"'{row.get('ResourceType')}' is not a valid taggable resource type"
            )
    tags = {tag["Key"]: tag["Value"] for row in specifications for tag in row.get("Tags", [])}
    check_tags("ec2", tags)
    price = call.region.catalog.price_usd_per_hour(offer.instance_type, call.region_name)
    fee = _upfront_usd(offer, price or 0.0)
    record = block_record(offer, tags=tags, region=call.region_name, now=call.region.clock(), upfront_usd=fee)
    call.region.store.put(record)
    view = tagged(call, record, compute.capacity_reservation(call, record))
    return {"CapacityReservation": view, "CapacityReservations": [view]}


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A capacity block on offer, as the offering's id encodes it."""

    instance_type: str
    count: int
    hours: int
    letter: str
    starts_at: datetime


def _offer(call: Call, id: str) -> Offer:
    """The offering that the id encodes. Raises AwsError if it is not ours, or if the block began over an hour ago."""
    refusal = AwsError("InvalidCapacityBlockOfferingId.NotFound", f"The Capacity Block offering '{id}' does not exist.")
    names = sorted(call.region.catalog.types)
    found = _ID.fullmatch(id)
    if found is None:
        raise refusal
    kind, count, days, letter, begins = (int(digits, 16) for digits in found.groups()[:5])
    starts_at = datetime.fromtimestamp(begins, UTC)
    if kind >= len(names) or starts_at < datetime.fromtimestamp(call.region.clock(), UTC) - timedelta(hours=1):
        raise refusal
    offer = Offer(instance_type=names[kind], count=count, hours=days * DAY_H, letter=chr(letter), starts_at=starts_at)
    if _offer_id(call, offer) != id:
        raise refusal
    return offer


def _offer_id(call: Call, offer: Offer) -> str:
    """The offering's id: `cb-` and 17 hex digits that encode all of it, so that offerings need not be stored."""
    kind = sorted(call.region.catalog.types).index(offer.instance_type)
    begins = int(offer.starts_at.timestamp())
    digits = f"{kind:02x}{offer.count:02x}{offer.hours // DAY_H:02x}{ord(offer.letter):02x}{begins:08x}"
    return f"cb-{digits}{sum(int(digit, 16) for digit in digits) % 16:x}"


def _upfront_usd(offer: Offer, price_usd_per_hour: float) -> float:
    return price_usd_per_hour * offer.count * offer.hours


def block_record(offer: Offer, *, tags: Properties, region: str, now: float, upfront_usd: float) -> Record:
    """The record of a block that was bought; only its tags say whose it is."""
    id = f"cr-{random_hex(17)}"
    ends_at = offer.starts_at + timedelta(hours=offer.hours)
    inputs: Properties = {
        "instanceType": offer.instance_type,
        "availabilityZone": region + offer.letter,
        "instanceCount": offer.count,
        "instancePlatform": "Linux/UNIX",
        "instanceMatchCriteria": "targeted",
        "endDateType": "limited",
        "endDate": ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "placementGroupArn": None,
        "tags": tags,
    }
    arn = f"arn:aws:ec2:{region}:{ACCOUNT_ID}:capacity-reservation/{id}"
    begins = offer.starts_at.timestamp()
    return Record(
        id=id,
        token=CAPACITY_RESERVATION,
        region=region,
        inputs=inputs,
        outputs={**inputs, "arn": arn, "tagsAll": tags, "region": region},
        facts={
            "state": "scheduled" if begins > now else "active",
            "starts_at": begins,
            "is_block": True,
            UPFRONT_USD: upfront_usd,
        },
        created_at=now,
    )


def _start(call: Call, day: int) -> datetime:
    """When the offering of the `day`th zone begins."""
    now, soon = (
        datetime.fromtimestamp(call.region.clock(), UTC).replace(microsecond=0),
        call.region.settings().blocks_begin_in_s,
    )
    if soon:
        return now + timedelta(seconds=soon, days=day - 1)
    return now.replace(hour=0, minute=0, second=0) + timedelta(days=day) + STARTS_AT


def _view(call: Call, name: str, count: int, hours: int, day: int, letter: str, *, price: float) -> dict[str, Any]:
    start = _start(call, day)
    offer = Offer(instance_type=name, count=count, hours=hours, letter=letter, starts_at=start)
    return {
        "CapacityBlockOfferingId": _offer_id(call, offer),
        "InstanceType": name,
        "AvailabilityZone": call.region_name + letter,
        "InstanceCount": count,
        "StartDate": _text(start),
        "EndDate": _text(start + timedelta(hours=hours)),
        "CapacityBlockDurationHours": hours,
        "UpfrontFee": f"{_upfront_usd(offer, price):.4f}",
        "CurrencyCode": "USD",
        "Tenancy": "default",
    }


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _instant(value: object) -> datetime | None:
    if value is None:
        return None
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
