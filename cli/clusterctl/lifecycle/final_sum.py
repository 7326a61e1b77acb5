"""What a cluster has cost by the time that `down` has ended it: afterwards no other command knows of it."""

from __future__ import annotations

from datetime import datetime

from clusterctl_infra.outputs import Inventory

from clusterctl.cost.cost_row import sums
from clusterctl.cost.estimate import cost_rows
from clusterctl.cost.sighting_file import read_observed
from clusterctl.engine.known_clusters import inventory_here
from clusterctl.home import Home
from clusterctl.status.ledger import read_ledger
from clusterctl.text.quantities import usd


def known_here(home: Home, cluster: str, *, cluster_id: str | None) -> Inventory | None:
    """The inventory here, if it is of the cluster with this id, else None; to be read before it is forgotten."""
    found = inventory_here(home, cluster)
    return found if found is not None and found.cluster_id == cluster_id else None


def final_sum_text(home: Home, inventory: Inventory, *, now: datetime) -> str | None:
    """`it cost about $12.34 in all`; None without a ledger: the last word on a cluster must not be a guess.

    It says `at most` for spot machines, and where AWS did not say when a machine or a reservation ended: the latest
    possible end is assumed.
    """
    ledger = read_ledger(home.ledger_file(inventory.cluster_id))
    if ledger is None:
        return None
    observed = read_observed(home, ledger, cluster_id=inventory.cluster_id, region=inventory.region)
    rows = cost_rows(inventory, ledger, alive=frozenset(), now=now, observed=observed, is_reserved=False)
    spent = sums(rows).spent_usd
    if spent is None:
        return "what it cost is unknown, because a price is unknown"
    is_seen = all(row.is_end_seen for row in rows if row.kind in ("node", "empty"))
    about = "about" if is_seen and inventory.capacity != "spot" else "at most about"
    simulated = " (simulated money)" if inventory.rehearsal else ""
    return f"it cost {about} {usd(spent)} in all, by list prices{simulated}"
