"""What spot machines cost, now and before, by type and zone, according to AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

LINUX_SPOT = "Linux/UNIX"
KEPT = timedelta(days=90)
"""How long AWS keeps prices (EC2 API, DescribeSpotPriceHistory; 2026-11-22)."""


@dataclass(frozen=True, kw_only=True)
class SpotPriceChange:
    """The price of one machine since an instant."""

    at: datetime
    usd_per_hour: float


def spot_prices_by_zone(
    clients: Clients, instance_types: Sequence[str], *, now: datetime
) -> Mapping[tuple[str, str], float]:
    """Type and zone → the price now, where there is one. Raises botocore's errors."""
    pages = clients.ec2.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=list(instance_types),  # type: ignore[arg-type]  # the stubs know only the types of their day
        ProductDescriptions=[LINUX_SPOT],
        StartTime=now,
    )
    rows = (row for page in pages for row in page["SpotPriceHistory"])
    return {(str(row["InstanceType"]), row["AvailabilityZone"]): float(row["SpotPrice"]) for row in rows}


def spot_history(
    clients: Clients, *, instance_type: str, zone: str, since: datetime, until: datetime
) -> tuple[SpotPriceChange, ...]:
    """The changes between the two, oldest first, and the last one before: the price at `since`. Raises CloudError."""
    with aws_errors(f"asking for the spot prices of {instance_type} in {zone}"):
        pages = clients.ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=[instance_type],  # type: ignore[list-item]  # the stubs know only the types of their day
            ProductDescriptions=[LINUX_SPOT],
            AvailabilityZone=zone,
            StartTime=since,
            EndTime=until,
        )
        rows = [row for page in pages for row in page["SpotPriceHistory"]]
    found = (SpotPriceChange(at=row["Timestamp"], usd_per_hour=float(row["SpotPrice"])) for row in rows)
    return tuple(sorted(found, key=lambda change: change.at))
