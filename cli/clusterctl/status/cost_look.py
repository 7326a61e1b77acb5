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
from clusterctl.status.cluster_clients import ClusterClients
from clusterctl.status.ledger import read_ledger
from clusterctl.status.overview import ended_early, ended_kinds


def look_at_cost(inventory: Inventory, *, home: Home, environ: Mapping[str, str], now: datetime) -> CostView:
    """All that `clusterctl cost` shows; never raises for what does not answer."""
    clients, id = ClusterClients(inventory, home=home, environ=environ), inventory.cluster_id
    ledger = read_ledger(home.ledger_file(id))
    instances, trouble = asked_instances(clients, id, home=home)
    is_reserved, reserved_trouble = asked_reserved(clients, id, home=home)
    observed = read_observed(home, ledger, cluster_id=id, region=inventory.region)
    end = asked_early_end(clients, inventory, instances, ledger, observed, is_reserved=is_reserved, now=now)
    since = min(spot_machines(observed, inventory.instance_type, now=now).values(), default=now)
    spot_prices, spot_trouble = (
        asked_spot_prices(clients, inventory, since=since, now=now) if inventory.capacity == "spot" else (None, None)
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
        ways_out=asked_ways_out(clients, inventory, instances),
        spot_prices=spot_prices,
        spot_trouble=spot_trouble,
    )
