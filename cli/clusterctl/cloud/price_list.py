"""Today's prices of instance types in one region, asked of AWS."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any  # the price list's JSON

from clusterctl_infra.catalog.fresh_prices import FreshPrice

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.spot_history import spot_prices_by_zone

PARALLEL = 8
FILTERS = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
"""These pick one of the many products that an instance type has: plain Linux, no reservation, shared hardware."""


def ask_prices(clients: Clients, instance_types: Sequence[str], *, now: datetime) -> tuple[FreshPrice, ...]:
    """The prices, dated with the day of `now`, of the types for which AWS has an on-demand price. Raises CloudError."""
    with aws_errors(f"asking for spot prices in {clients.region}"):
        spot = spot_prices(clients, instance_types, now=now)
    clients.pricing.meta  # noqa: B018  made here: botocore makes clients in one thread only
    with aws_errors("asking the AWS Price List"), ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = list(pool.map(lambda name: on_demand_price(_products(clients, name)), instance_types))
    return tuple(
        FreshPrice(
            instance_type=name,
            region=clients.region,
            on_demand_usd_per_hour=price,
            spot_usd_per_hour=spot.get(name),
            dated=now.date().isoformat(),
        )
        for name, price in zip(instance_types, found, strict=True)
        if price is not None
    )


def on_demand_price(products: Iterable[str]) -> float | None:
    """US dollars per hour in the price list's documents; None when they name none, or more than one."""
    prices = {
        float(dimension["pricePerUnit"]["USD"])
        for document in map(json.loads, products)
        for term in document.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
        if dimension.get("unit") == "Hrs" and "USD" in dimension["pricePerUnit"]
    }
    prices.discard(0.0)
    return prices.pop() if len(prices) == 1 else None


def spot_prices(
    clients: Clients, instance_types: Sequence[str], *, now: datetime, zone: str | None = None
) -> Mapping[str, float]:
    """Type → its spot price now in the zone (None: the lowest in the region); types without one are left out.

    Raises botocore's errors.
    """
    lowest: dict[str, float] = {}
    for (name, of_zone), price in spot_prices_by_zone(clients, instance_types, now=now).items():
        if zone in (None, of_zone):
            lowest[name] = min(price, lowest.get(name, price))
    return lowest


def _products(clients: Clients, instance_type: str) -> list[str]:
    asked = {**FILTERS, "instanceType": instance_type, "regionCode": clients.region}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in asked.items()]
    pages: Iterable[Mapping[str, Any]] = clients.pricing.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2", Filters=filters, FormatVersion="aws_v1"
    )
    return [document for page in pages for document in page["PriceList"]]
