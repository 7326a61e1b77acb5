"""The capacity blocks that AWS would sell: when, where, for what. Nothing here buys one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # EC2's answers

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

US_DOLLARS = "USD"


@dataclass(frozen=True, kw_only=True)
class BlockRequest:
    """The capacity block to look for."""

    instance_types: tuple[str, ...]
    instances: int
    hours: int
    starts_from: datetime | None
    """None: from now on."""


@dataclass(frozen=True, kw_only=True)
class BlockOffering:
    """One block, as AWS offers it at this moment."""

    offering_id: str
    instance_type: str
    zone: str
    instances: int
    starts_at: datetime
    ends_at: datetime
    hours: int
    fee_usd: float | None
    """The price of the whole block, paid at once; None: in another currency, or AWS did not say."""
    segments: int = 1
    """How many reservations it consists of, one after the other."""


def ask_offerings(clients: Clients, asked: BlockRequest) -> tuple[BlockOffering, ...]:
    """What AWS offers, the cheapest first, then the earliest. Raises CloudError."""
    found: list[BlockOffering] = []
    for name in asked.instance_types:
        with aws_errors(f"asking for capacity blocks of {name} in {clients.region}"):
            found += [_offering(row) for row in _rows(clients, asked, name)]
    return tuple(sorted(found, key=_rank))


def _rows(clients: Clients, asked: BlockRequest, name: str) -> Sequence[Mapping[str, Any]]:
    parameters: dict[str, Any] = {
        "InstanceType": name,
        "InstanceCount": asked.instances,
        "CapacityDurationHours": asked.hours,
    }
    if asked.starts_from is not None:
        parameters["StartDateRange"] = asked.starts_from
    pages: Iterable[Mapping[str, Any]] = clients.ec2.get_paginator("describe_capacity_block_offerings").paginate(
        **parameters
    )
    return [row for page in pages for row in page["CapacityBlockOfferings"]]


def _offering(row: Mapping[str, Any]) -> BlockOffering:
    return BlockOffering(
        offering_id=row["CapacityBlockOfferingId"],
        instance_type=row["InstanceType"],
        zone=row["AvailabilityZone"],
        instances=row["InstanceCount"],
        starts_at=row["StartDate"],
        ends_at=row["EndDate"],
        hours=row["CapacityBlockDurationHours"],
        fee_usd=_dollars(row),
        segments=max(1, len(row.get("CapacityBlockOfferingSegments") or ())),
    )


def _dollars(row: Mapping[str, Any]) -> float | None:
    """The fee, which AWS gives as a text; None, never 0, if it is not a possible sum in US dollars."""
    try:
        fee = float(row["UpfrontFee"])
    except (KeyError, TypeError, ValueError):
        return None
    return fee if row.get("CurrencyCode") == US_DOLLARS and 0 < fee < math.inf else None


def _rank(offering: BlockOffering) -> tuple[float, datetime, str]:
    return (math.inf if offering.fee_usd is None else offering.fee_usd, offering.starts_at, offering.zone)
