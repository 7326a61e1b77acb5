"""`clusterctl status`: what every node does, the cost, the deadline."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.errors import SomeNodesFailed

from clusterctl.home import home_directory
from clusterctl.options import chosen_cluster, cluster_option, connect_timeout_option, json_option
from clusterctl.output import Output
from clusterctl.status.facts import gather
from clusterctl.status.node_answers import USUAL_WAITS, usual_wait_s
from clusterctl.status.overview import overview
from clusterctl.status.view import status_json, status_text


@click.command("status")
@cluster_option
@connect_timeout_option(default=None, shown=USUAL_WAITS)
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, connect_timeout: float | None, as_json: bool) -> int:
    """What every node does now, what the cluster has cost, when it ends.

    AWS and every node are asked at once. Whoever does not answer is `unknown` or `unreachable`, not gone.
    The cost is an estimate from list prices. The exit code is 4 when a node is not ready.

    \b
    Examples:
      clusterctl status
      clusterctl status --json | jq '.nodes[] | select(.state != "ready")'
    """
    inventory = chosen_cluster(cluster)
    now = datetime.now(UTC)
    facts = gather(
        inventory,
        home=home_directory(os.environ),
        environ=os.environ,
        now=now,
        connect_timeout_s=usual_wait_s(inventory) if connect_timeout is None else connect_timeout,
        ssh_dir=Path.home() / ".ssh",
    )
    seen = overview(inventory, facts)
    if as_json:
        output.json(status_json(seen))
    else:
        output.data(status_text(seen))
    return 0 if seen.ready == len(seen.nodes) else SomeNodesFailed.exit_code
