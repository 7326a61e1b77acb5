"""`clusterctl cost`: what a cluster has cost, costs now, and will have cost."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import click
from clusterctl_infra.outputs import Inventory

from clusterctl.cost.sighting_file import read_observed
from clusterctl.home import home_directory
from clusterctl.options import chosen_cluster, cluster_option, json_option
from clusterctl.output import Output
from clusterctl.status.account import read_account
from clusterctl.status.gather import asked_early_end, asked_instances, asked_reserved, asked_spot_prices
from clusterctl.status.overview import ended_early, ended_kinds
from clusterctl.views.cost import CostView, cost_json, cost_text

WATCH_S = 10.0


@click.command("cost")
@cluster_option
@click.option("--watch", is_flag=True, help=f"Again every {WATCH_S:.0f} s, until Ctrl-C; with --json a line each time.")
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, watch: bool, as_json: bool) -> None:
    """What the cluster has cost so far, costs now, and will have cost when it ends: per node and kind.

    An estimate: times as AWS told them, else (~) from this computer's account of the cluster; list prices with their
    date. A slot that is reserved and empty bills like a full one, and is named. Spot machines are counted at their
    maximum price, the most that AWS bills; what they cost by the spot prices of their time, as AWS tells them, stands
    below. In a rehearsal all money is simulated.

    \b
    Examples:
      clusterctl cost
      clusterctl cost --json | jq .estimated_cost.spent_usd
    """
    while True:
        seen = _look(chosen_cluster(cluster))
        if as_json:
            output.json(cost_json(seen), is_line=watch)
        else:
            output.data(cost_text(seen) + ("\n" if watch else ""))
        if not watch:
            return
        time.sleep(WATCH_S)


def _look(inventory: Inventory) -> CostView:
    home = home_directory(os.environ)
    now = datetime.now(UTC).replace(microsecond=0)
    account = read_account(home.ledger_file(inventory.cluster_id))
    instances, trouble = asked_instances(inventory, home=home, environ=os.environ)
    is_reserved, reserved_trouble = asked_reserved(inventory, home=home, environ=os.environ)
    observed = read_observed(home, account, cluster_id=inventory.cluster_id, region=inventory.region)
    end = asked_early_end(
        inventory, instances, account, observed, is_reserved=is_reserved, home=home, environ=os.environ, now=now
    )
    is_spot = inventory.capacity == "spot"
    spot_prices, spot_trouble = (
        asked_spot_prices(inventory, home=home, environ=os.environ, now=now) if is_spot else (None, None)
    )
    return CostView(
        inventory=ended_early(inventory, end, now=now),
        account=account,
        alive=None if instances is None else frozenset(row.instance_id for row in instances if row.is_alive),
        cloud_trouble=trouble,
        now=now,
        observed=observed,
        is_reserved=is_reserved,
        reserved_trouble=reserved_trouble,
        over=ended_kinds(end),
        spot_prices=spot_prices,
        spot_trouble=spot_trouble,
    )
