"""`clusterctl logs`: logs of many nodes, merged by time."""

from __future__ import annotations

import os
import re
import time

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.logs.request import LogRequest
from clusterctl.logs.show import show_history, show_on
from clusterctl.logs.source import SOURCES, chosen_sources
from clusterctl.options import (
    NODES_HELP,
    chosen_cluster,
    chosen_rows,
    cluster_option,
    connect_timeout_option,
    json_option,
    node_option,
    time_option,
)
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.remote_command import usable_keys

HELP = """Logs of many nodes, merged by time (UTC, by this computer's clock): bootstrap, cloud-init, kernel, system.

A SOURCE is one of these, a file (/var/log/nvidia-fabricmanager.log), a unit (unit:ssh.service), or a script
of cluster.yaml by its name (setup.sh); bootstrap when none is named. In a file's path, patterns and variables of
the node's environment mean what they mean on each node: quote them. Of each file the last MiB is read; one on
storage that the nodes share is shown once, as [shared]. A log
that gives nothing for half of --timeout (a file system that hangs) is named, and the others are shown; -f goes
on. The exit code is 4 when a node was not reached, or has no such log. --json gives one line per log line.

\b
Examples:
  clusterctl logs
  clusterctl logs kernel --grep Xid
  clusterctl logs -f --node 0-1 cloud-init /shared/run/train.log
  clusterctl logs '/scratch/run/rank-$NODE_RANK.log' '/var/log/nvidia*.log'
"""


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names that are no path."""
    named = ctx.params.get("sources") or ()
    return [word for word in (*SOURCES, "unit:") if word.startswith(incomplete) and word not in named]


@click.command("logs", help=HELP)
@cluster_option
@node_option(default="all", help=NODES_HELP)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written, over lost connections too.")
@time_option("--since", default=None, help="Only the last 10m, 2h.")
@click.option("--names", is_flag=True, help="[train-0] before a line instead of [Node 0].")
@click.option("--grep", metavar="REGEX", help="Only lines that match, looked for on the nodes.")
@connect_timeout_option(default="10s")
@time_option("--timeout", default="60s", help="Give up a node whose logs have not come by then.")
@json_option
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, shell_complete=complete_sources)
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    node: str,
    follow: bool,
    since: float | None,
    names: bool,
    grep: str | None,
    connect_timeout: float,
    timeout: float,
    as_json: bool,
    sources: tuple[str, ...],
) -> int:
    chosen = chosen_sources(sources)
    try:
        re.compile(grep or "")
    except re.error as e:
        raise UsageError(f"--grep {grep!r}: {e}", hint="clusterctl logs --help") from e
    inventory = chosen_cluster(cluster)
    nodes = chosen_rows(inventory, node)
    request = LogRequest(
        inventory=inventory,
        nodes=nodes,
        sources=chosen,
        since_s=None if since is None else time.time() - since,
        grep=grep,
        is_followed=follow,
        timeout_s=timeout,
        keys=usable_keys(inventory, home_directory(os.environ)),
        deadlines=Deadlines.within(connect_timeout),
    )
    return (show_on if follow else show_history)(request, output, as_json=as_json, has_names=names)
