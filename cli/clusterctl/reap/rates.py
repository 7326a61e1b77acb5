"""What a found thing costs an hour by the catalog's list prices; None is unknown, never 0. Pure.

A spot machine costs the price of the moment; where AWS gives none, at most its price on demand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from clusterctl_infra.catalog.reader import Catalog

from clusterctl.cloud.resource import CloudResource, Meter
from clusterctl.reap.spot_market import Market

HOURS_PER_DAY = 24
NO_MARKET: Market = {}


def usd_per_day(
    things: Iterable[CloudResource], catalog: Catalog, region: str, *, market: Market = NO_MARKET
) -> float | None:
    """What they cost a day together; None as soon as one price is unknown."""
    rates = [usd_per_hour(resource, catalog, region, market=market) for resource in things]
    known = [rate for rate in rates if rate is not None]
    return math.fsum(known) * HOURS_PER_DAY if len(known) == len(rates) else None


def is_at_most(things: Iterable[CloudResource], market: Market) -> bool:
    """Whether one of them counts at the most that it can cost: a spot machine whose current price AWS does not give."""
    meters = (resource.meter for resource in things)
    return any(
        meter is not None and meter.unit == "spot machine" and (meter.name, meter.zone) not in market
        for meter in meters
    )


def usd_per_hour(resource: CloudResource, catalog: Catalog, region: str, *, market: Market = NO_MARKET) -> float | None:
    """What a resource costs an hour for as long as it exists; None: unknown."""
    if resource.meter is None or resource.meter.amount == 0:
        return 0.0
    each = _unit_price(resource.meter, catalog, region, market)
    return None if each is None else each * resource.meter.amount


def _unit_price(meter: Meter, catalog: Catalog, region: str, market: Market) -> float | None:
    charges = catalog.charges.get(region)
    match meter.unit:
        case "machine":
            return catalog.price_usd_per_hour(meter.name, region)
        case "spot machine":
            return market.get((meter.name, meter.zone), catalog.price_usd_per_hour(meter.name, region))
        case "address":
            return catalog.public_address_usd_per_hour
        case "NAT gateway":
            return None if charges is None else charges.nat_gateway_usd_per_hour
        case "endpoint":
            return None if charges is None else charges.endpoint_usd_per_hour
        case "disk GiB":
            return None if charges is None else charges.disk_usd_per_gib_hour
        case "EFS GiB":
            efs = catalog.storage.efs.get(region)
            return None if efs is None else efs.stored_usd_per_gib_month / catalog.storage.hours_per_month
        case "Lustre GiB":
            tier = int(meter.name) if meter.name else None
            return catalog.storage.lustre_usd_per_hour(region, size_gib=1, throughput=tier)
