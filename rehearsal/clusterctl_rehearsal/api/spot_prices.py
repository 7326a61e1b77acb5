"""DescribeSpotPriceHistory: the catalog's spot price, the same in every zone and at every time."""

from __future__ import annotations

from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api.call import Call
from clusterctl_rehearsal.api.filters import matching, page

LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
"""The only product that the catalog has prices of; in a VPC both names mean it."""


def describe_spot_prices(call: Call) -> dict[str, Any]:
    """The answer to DescribeSpotPriceHistory."""
    asked = call.parameters
    products = asked.get("ProductDescriptions") or [LINUX[0]]
    names = asked.get("InstanceTypes") or call.region.catalog.names()
    zones = [call.region_name + letter for letter in call.region.settings().zones]
    wanted_zones = [zone for zone in zones if asked.get("AvailabilityZone") in (None, zone)]
    is_linux = any(product in LINUX for product in products)
    rows = [_view(call, name, zone) for name in names for zone in wanted_zones if is_linux]
    shown = [row for row in rows if row is not None]
    found, rest = page(matching(shown, asked.get("Filters") or [], {}), asked)
    return {"SpotPriceHistory": found, "NextToken": rest}


def _view(call: Call, name: str, zone: str) -> dict[str, Any] | None:
    """One row of the answer; None if no price is known."""
    catalog = call.region.catalog
    price = catalog.spot_price_usd_per_hour(name, call.region_name)
    if price is None:
        return None
    dated = (catalog.price_dated(name, call.region_name) + "-01")[:10]  # a month counts from its first day
    return {
        "InstanceType": name,
        "AvailabilityZone": zone,
        "ProductDescription": LINUX[0],
        "SpotPrice": f"{price:.6f}",
        "Timestamp": f"{dated}T00:00:00.000Z",
    }
