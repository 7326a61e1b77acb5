"""What spot machines cost now, where a look through the account found some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from clusterctl_infra.errors import CloudError

from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.spot_history import spot_prices_by_zone
from clusterctl.reap.remains import Remains
from clusterctl.reap.search import ClientsOf

Market = Mapping[tuple[str, str], float]
"""(Instance type, zone) → US dollars per hour; no two regions have a zone of the same name."""


def spot_market(remains: Iterable[Remains], clients_of: ClientsOf, *, now: datetime) -> Market:
    """The current price of each spot machine's type in its zone; AWS is not asked where there is no spot machine.

    A price that AWS does not give is left out: the machine counts at its price on demand, which it never exceeds.
    """
    types: dict[str, set[str]] = {}
    for cluster in remains:
        for thing in cluster.things:
            if thing.meter is not None and thing.meter.unit == "spot machine":
                types.setdefault(cluster.region or "", set()).add(thing.meter.name)
    market: dict[tuple[str, str], float] = {}
    for region, names in types.items():
        try:
            with aws_errors(f"asking for spot prices in {region}"):
                market |= spot_prices_by_zone(clients_of(region), sorted(names), now=now)
        except CloudError:
            continue
    return market
