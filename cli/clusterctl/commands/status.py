"""`clusterctl status`: what every node does, the cost, the deadline."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.errors import SomeNodesFailed
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.known_clusters import VARIABLE
from clusterctl.home import home_directory
from clusterctl.options import chosen_cluster, cluster_option, connect_timeout_option, json_option
from clusterctl.output import Output
from clusterctl.status.all_clusters import all_json, all_text, look_at_all
from clusterctl.status.facts import gather
from clusterctl.status.node_answers import USUAL_WAITS, usual_wait_s
from clusterctl.status.overview import Overview, overview
from clusterctl.status.view import status_json, status_text


@click.command("status")
@cluster_option
@connect_timeout_option(default=None, shown=USUAL_WAITS)
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, connect_timeout: float | None, as_json: bool) -> int:
    """Shows what every node does, what the cluster has cost, and when it ends.

    AWS and all nodes are asked at once. A node that does not answer is `unknown` or `unreachable`, not gone. What AWS
    plans for its machine, such as a reboot or a retirement, is in its row. The cost is an estimate from list prices. If
    several clusters are known here and none is named, each has a line. The exit code is 4 when a node is not ready.

    \b
    Examples:
      clusterctl status
      clusterctl status --json | jq '.nodes[] | select(.state != "ready")'
    """
    known = home_directory(os.environ).cluster_names
    if cluster is None and not os.environ.get(VARIABLE) and len(known) > 1:
        rows = look_at_all(known, lambda name: _seen(chosen_cluster(name), connect_timeout))
        if as_json:
            output.json(all_json(rows))
        else:
            output.data(all_text(rows))
        return 0 if all(row.is_ready for row in rows) else SomeNodesFailed.exit_code
    seen = _seen(chosen_cluster(cluster), connect_timeout)
    if as_json:
        output.json(status_json(seen))
    else:
        output.data(status_text(seen))
    return 0 if seen.ready == len(seen.nodes) else SomeNodesFailed.exit_code


def _seen(inventory: Inventory, connect_timeout_s: float | None) -> Overview:
    facts = gather(
        inventory,
        home=home_directory(os.environ),
        environ=os.environ,
        now=datetime.now(UTC),
        connect_timeout_s=usual_wait_s(inventory) if connect_timeout_s is None else connect_timeout_s,
        ssh_dir=Path.home() / ".ssh",
    )
    return overview(inventory, facts)
