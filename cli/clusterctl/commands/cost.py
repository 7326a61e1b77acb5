"""`clusterctl cost`: what a cluster has cost, costs now, and will have cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

import click

from clusterctl.cost.view import CostView, cost_json, cost_text
from clusterctl.home import home_directory
from clusterctl.options import cluster_but_not_hosts, cluster_option, json_option
from clusterctl.output import Output
from clusterctl.status.cost_look import look_at_cost

WATCH_S = 10.0


@click.command("cost")
@cluster_option
@click.option("--watch", is_flag=True, help=f"Again every {WATCH_S:.0f} s, until Ctrl-C; with --json a line each time.")
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, watch: bool, as_json: bool) -> None:
    """Shows what the cluster has cost, costs per hour, and will have cost at its end, by node and kind.

    It is an estimate: from the times that AWS reports, else (~) from what this computer recorded, and from dated list
    prices. A slot that is reserved and empty bills like a full one, and is named. Spot machines are counted at their
    maximum price, the most that AWS bills; what they cost by the spot prices that AWS reports for their time is shown
    below. In a rehearsal all money is simulated.

    \b
    Examples:
      clusterctl cost
      clusterctl cost --json | jq .estimated_cost.spent_usd
    """

    def look() -> CostView:
        now = datetime.now(UTC).replace(microsecond=0)
        inventory = cluster_but_not_hosts(cluster, verb="cost", instead="clusterctl does not know what they cost")
        return look_at_cost(inventory, home=home_directory(os.environ), environ=os.environ, now=now)

    show(look, output, watch=watch, as_json=as_json)


def show(
    look: Callable[[], CostView],
    output: Output,
    *,
    watch: bool,
    as_json: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Shows the cost once, or with `watch` again after each pause, until it is stopped."""
    while True:
        seen = look()
        if as_json:
            output.json(cost_json(seen), is_line=watch)
        elif watch:
            output.screen(cost_text(seen))
        else:
            output.data(cost_text(seen))
        if not watch:
            return
        pause(WATCH_S)
