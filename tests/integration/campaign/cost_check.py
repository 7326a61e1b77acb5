"""What `clusterctl cost` and `clusterctl down` tell a person, beside the region's bill of the same machines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any  # parsed JSON

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.region.bill import BillRow

from tests.integration.campaign.ledger_and_bill import CENT
from tests.integration.campaign.region_facts import REGION, billed
from tests.integration.rehearsed import Rehearsed

NODES = 3
"""At most, in a campaign."""
MOST_EARLY_S = 45.0
"""An assumed end may be this early: a change takes effect later than the instant that it is planned for."""
CONFIRMED_S = 2.0
"""From the end of a reservation until the engine reports it."""
SUM_AT_THE_END = re.compile(r"it cost (at most )?about \$([\d,]+\.\d\d) in all")


@dataclass(frozen=True, kw_only=True)
class CostCheck:
    """One look at `cost`: the bill of the same instant differs in nothing but what `cost` marks as assumed."""

    to_the_cent: int
    """Machines whose start, and end if any, AWS reported: each costs what it bills."""
    assumed: int
    early_s: float
    """An assumed end is at most this long before the true one: the cost shown is too low by that time."""
    late_s: float
    wrong: tuple[str, ...]


def checked_cost(cluster: Rehearsed) -> CostCheck | None:
    """What `cost --json` says of the cluster's machines; None where nothing is known of a cluster."""
    if not has_inventory(cluster):
        return None
    done = cluster.run("cost", "--json")
    if done.exit_code != 0:
        return CostCheck(to_the_cent=0, assumed=0, early_s=0.0, late_s=0.0, wrong=(f"cost: {done.text[-400:]}",))
    cost = json.loads(done.stdout)
    rows = billed(cluster, until=datetime.fromisoformat(cost["at"]).timestamp())
    machines = [row for row in rows if row.kind == "Instance" and row.cluster_id == cost["cluster_id"]]
    nodes = [row for row in cost["rows"] if row["kind"] == "node" and row["instance_id"]]
    if cluster.config.get("capacity") != "spot":
        return compare(nodes, machines)
    check = compare(at_spot(nodes, instance_type=str(cluster.config["instance_type"])), machines)
    wrong = wrong_spot_sum(cost["estimated_cost"]["machines_at_spot_usd"], nodes, machines)
    return check if wrong is None else replace(check, wrong=(*check.wrong, wrong))


def compare(nodes: Sequence[Mapping[str, Any]], bill: Sequence[BillRow]) -> CostCheck:
    """`cost`'s rows of machines against the bill's. Pure."""
    by_id = {str(row["instance_id"]): row for row in nodes}
    wrong = [f"{row.id} bills and cost has it not" for row in bill if row.id not in by_id]
    wrong += [f"cost has {id}, and the region never had" for id in by_id.keys() - {row.id for row in bill}]
    exact, off_s = 0, []
    for row in bill:
        node = by_id.get(row.id)
        if node is None:
            continue
        if is_observed(node):
            exact += 1
            if abs(node["spent_usd"] - (row.usd or 0.0)) > CENT:
                wrong.append(f"{row.id} bills ${row.usd:.4f}, and cost says ${node['spent_usd']:.4f}")
        else:
            off_s.append(_end_s(node) - (row.ended_at or _end_s(node)))
    early_s, late_s = max([0.0, *(-off for off in off_s)]), max([0.0, *off_s])
    if early_s > MOST_EARLY_S:
        wrong.append(f"cost assumes an end {early_s:.1f} s before the true one")
    return CostCheck(to_the_cent=exact, assumed=len(off_s), early_s=early_s, late_s=late_s, wrong=tuple(wrong))


def at_spot(nodes: Sequence[Mapping[str, Any]], *, instance_type: str) -> list[dict[str, Any]]:
    """`cost`'s rows at the spot price: it counts spot machines at their maximum, here the on-demand price."""
    catalog = load_catalog()
    spot, most = (
        price(instance_type, REGION) for price in (catalog.spot_price_usd_per_hour, catalog.price_usd_per_hour)
    )
    assert spot is not None, instance_type
    assert most is not None, instance_type
    return [{**row, "spent_usd": row["spent_usd"] * spot / most} for row in nodes]


def wrong_spot_sum(spot_usd: float | None, nodes: Sequence[Mapping[str, Any]], bill: Sequence[BillRow]) -> str | None:
    """What is wrong with what `cost` says that all machines cost by the spot prices of their time. Pure.

    Assumed ends are late: with any of them, the sum is not judged.
    """
    if spot_usd is None:
        return "cost does not know what the machines cost by the spot prices"
    if not all(map(is_observed, nodes)):
        return None
    true_usd = sum(row.usd or 0.0 for row in bill)
    is_right = abs(spot_usd - true_usd) <= CENT
    return None if is_right else f"cost says ${spot_usd:.4f} by the spot prices, and the bill is ${true_usd:.4f}"


def is_observed(row: Mapping[str, Any]) -> bool:
    """AWS reported its start, and its end if it has ended."""
    return row["start"] == "observed" and row["end"] in (None, "observed")


def wrong_last_word(output: str, bill: Sequence[BillRow]) -> str | None:
    """What is wrong with the sum that `down` ends with: it is the bill's, or more where it says `at most`. Pure.

    AWS does not report when a reservation ended: it counts until AWS confirmed the end, seconds too long.
    """
    found = SUM_AT_THE_END.search(output)
    if found is None:
        return None
    true_usd = sum(row.usd or 0.0 for row in bill)
    reservations = sum(row.kind == "CapacityReservation" for row in bill)
    more_usd = float("inf") if found[1] else 0.01 + reservations * CONFIRMED_S * _places_usd_per_s(bill)
    shown_usd = float(found[2].replace(",", ""))
    is_right = true_usd - 0.01 <= shown_usd <= true_usd + more_usd
    return None if is_right else f"down says {found[0]!r}, and the bill is ${true_usd:.4f}"


def _places_usd_per_s(bill: Sequence[BillRow]) -> float:
    """What all places of a reservation cost a second, by the machines that were in them."""
    rates = [(row.usd or 0.0) / max(1.0, (row.ended_at or row.began_at) - row.began_at) for row in bill]
    return NODES * max(rates, default=0.0)


def has_inventory(cluster: Rehearsed) -> bool:
    """This computer knows of the cluster."""
    return (cluster.home / "inventory" / f"{cluster.name}@rehearsal.json").exists()


def _end_s(row: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(row["ended_at"]).timestamp() if row["ended_at"] else 0.0
