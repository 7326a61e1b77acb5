"""Whether AWS would make spot machines for the maximum price: asked before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from clusterctl_infra.catalog.fresh_prices import refresh_command
from clusterctl_infra.errors import CapExceeded, CloudError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.price_list import spot_prices
from clusterctl.cloud.refusal import aws_errors
from clusterctl.views.again import edit
from clusterctl.views.quantities import usd


def refuse_below_spot_price(
    clients: Clients, cluster_plan: ClusterPlan, *, now: datetime, source: str, tell: Callable[[str], None]
) -> None:
    """Raises CapExceeded when machines cost more than their maximum now; the price of the moment is told.

    AWS would say no after the network and the storage were made. Whoever may not ask learns it from AWS then.
    """
    spot = cluster_plan.price.spot
    if spot is None:
        return
    try:
        market = market_price(clients, cluster_plan, now=now)
    except CloudError as e:
        tell(f"  spot     the price of the moment is not known: {e.message}")
        return
    where = cluster_plan.chosen_zone or f"the cheapest zone of {cluster_plan.region}"
    name, most = cluster_plan.instance_type, spot.max_usd_per_hour
    if market is None:
        tell(f"  spot     AWS names no spot price of {name} in {where}")
        return
    told = f"a spot {name} costs {usd(market)} in {where} now"
    if most is not None and most < market:
        dated = cluster_plan.price.prices_dated
        why = "caps.price_usd_per_hour" if spot.is_capped else f"the price on demand of {dated}"
        raise CapExceeded(
            f"{told}, and the maximum is {usd(most)} ({why}): AWS makes none for less. Nothing was changed",
            hint=edit(source) if spot.is_capped else refresh_command(cluster_plan.region, name),
        )
    tell(f"  spot     {told}; counted at {usd(most)}, the most that it can cost")


def market_price(clients: Clients, cluster_plan: ClusterPlan, *, now: datetime) -> float | None:
    """What AWS asks for one machine in the cluster's zone now, or in the cheapest one; None: it names no price.

    Raises CloudError.
    """
    name = cluster_plan.instance_type
    with aws_errors(f"asking for the spot price of {name}"):
        return spot_prices(clients, [name], now=now, zone=cluster_plan.chosen_zone).get(name)
