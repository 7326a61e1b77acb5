"""`clusterctl logs`: logs of many nodes, merged by time."""

from __future__ import annotations

import os
import re
import time

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.logs.request import LogRequest
from clusterctl.logs.show import follow_logs, show_history
from clusterctl.logs.source import SOURCES, chosen_sources
from clusterctl.options import (
    NODES_HELP,
    chosen_cluster,
    chosen_rows,
    cluster_option,
    connect_timeout_option,
    json_option,
    names_option,
    node_option,
    time_option,
)
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.remote_command import usable_keys

HELP = """Logs of many nodes, merged by time (UTC, by this computer's clock).

A SOURCE is bootstrap (the default), cloud-init, kernel, system, a file (/var/log/nvidia-fabricmanager.log), a unit
(unit:ssh.service), or a script of cluster.yaml by its name (setup.sh). A path may have patterns and variables, which
each node expands: quote them. The last MiB of each file is read. A file on storage that the nodes share is shown once,
as [shared]. A log that gives nothing for half of --timeout (a file system that hangs) is named, and the others are
shown; with -f it is followed all the same. --json prints one line per log line. The exit code is 4 when a node was not
reached, or has no such log.

\b
Examples:
  clusterctl logs
  clusterctl logs kernel --grep Xid
  clusterctl logs -f --node 0-1 cloud-init /shared/run/train.log
  clusterctl logs '/scratch/run/rank-$NODE_RANK.log' '/var/log/nvidia*.log'
"""


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the names of sources that are not paths."""
    named = ctx.params.get("sources") or ()
    return [word for word in (*SOURCES, "unit:") if word.startswith(incomplete) and word not in named]


@click.command("logs", help=HELP)
@cluster_option
@node_option(default="all", help=NODES_HELP)
@click.option("-f", "--follow", is_flag=True, help="Follow, and go on after a lost connection.")
@time_option("--since", default=None, help="Only the last 10m, 2h.")
@names_option(default=False, usual="--numbers")
@click.option("--grep", metavar="REGEX", help="Only lines that match; the nodes filter.")
@connect_timeout_option(default="10s")
@time_option("--timeout", default="60s", help="Give up on a node whose logs take longer.")
@json_option
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, shell_complete=complete_sources)
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    node: str,
    follow: bool,
    since: float | None,
    has_names: bool,
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
    return (follow_logs if follow else show_history)(request, output, as_json=as_json, has_names=has_names)
