"""What bills beside machines and storage, by region: gateways, endpoints, disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # JSON before it is checked


@dataclass(frozen=True, kw_only=True)
class RegionCharges:
    """List prices of one region in US dollars; None is unknown, never 0."""

    nat_gateway_usd_per_hour: float | None
    endpoint_usd_per_hour: float | None
    """Of an interface endpoint in one zone; a gateway endpoint costs nothing."""
    disk_usd_per_gib_hour: float
    """gp3, as nodes' root disks are."""


def region_charges(document: Mapping[str, Any]) -> dict[str, RegionCharges]:
    """The prices in the data file's JSON, by region."""
    return {
        region: RegionCharges(
            nat_gateway_usd_per_hour=row.get("nat_gateway_usd_per_hour"),
            endpoint_usd_per_hour=row.get("endpoint_usd_per_hour"),
            disk_usd_per_gib_hour=row["disk_usd_per_gib_month"] / document["hours_per_month"],
        )
        for region, row in document["regions"].items()
    }
