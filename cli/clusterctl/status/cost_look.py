"""One look at what a cluster has cost: AWS's word, this computer's ledger, and what neither knows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from clusterctl_infra.outputs import Inventory

from clusterctl.cost.sighting_file import read_observed
from clusterctl.cost.spot_bill import spot_machines
from clusterctl.cost.view import CostView
from clusterctl.home import Home
from clusterctl.status.cloud_answers import (
    asked_early_end,
    asked_instances,
    asked_reserved,
    asked_spot_prices,
    asked_ways_out,
)
from clusterctl.status.ledger import read_ledger
from clusterctl.status.overview import ended_early, ended_kinds


def look_at_cost(inventory: Inventory, *, home: Home, environ: Mapping[str, str], now: datetime) -> CostView:
    """All that `clusterctl cost` shows; never raises for what does not answer."""
    ledger = read_ledger(home.ledger_file(inventory.cluster_id))
    instances, trouble = asked_instances(inventory, home=home, environ=environ)
    is_reserved, reserved_trouble = asked_reserved(inventory, home=home, environ=environ)
    observed = read_observed(home, ledger, cluster_id=inventory.cluster_id, region=inventory.region)
    end = asked_early_end(
        inventory, instances, ledger, observed, is_reserved=is_reserved, home=home, environ=environ, now=now
    )
    since = min(spot_machines(observed, inventory.instance_type, now=now).values(), default=now)
    spot_prices, spot_trouble = (
        asked_spot_prices(inventory, home=home, environ=environ, since=since, now=now)
        if inventory.capacity == "spot"
        else (None, None)
    )
    return CostView(
        inventory=ended_early(inventory, end, now=now),
        ledger=ledger,
        alive=None if instances is None else frozenset(row.instance_id for row in instances if row.is_alive),
        cloud_trouble=trouble,
        now=now,
        observed=observed,
        is_reserved=is_reserved,
        reserved_trouble=reserved_trouble,
        over=ended_kinds(end),
        ways_out=asked_ways_out(inventory, instances, home=home, environ=environ),
        spot_prices=spot_prices,
        spot_trouble=spot_trouble,
    )
