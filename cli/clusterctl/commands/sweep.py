"""`clusterctl sweep`: every node's health in one table."""

from __future__ import annotations

import os

import click

from clusterctl.home import home_directory
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
from clusterctl.probes.sweep import PROBES, Sweep, chosen_probes, sweep_on, sweep_once
from clusterctl.ssh.remote_command import usable_keys


def complete_probes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the last name of a list: `gpu,dis` becomes `gpu,disk`."""
    before, comma, word = incomplete.rpartition(",")
    named = before.split(",")
    return [f"{before}{comma}{name}" for name in PROBES if name.startswith(word) and name not in named]


@click.command("sweep")
@cluster_option
@node_option(default="all", help=NODES_HELP)
@click.option(
    "--probe",
    "probes",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_probes,
    help=f"Only these, separated by commas: {', '.join(PROBES)}.",
)
@time_option("--watch", default=None, help="Repeat at this interval, such as 10s, until Ctrl-C.")
@time_option("--timeout", default="60s", help="How long a node may take for all probes; each has its own limit too.")
@connect_timeout_option(default="10s")
@json_option
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    node: str,
    probes: tuple[str, ...],
    watch: float | None,
    timeout: float,
    connect_timeout: float,
    as_json: bool,
) -> int:
    """Shows every node's health: GPUs, links, fabric, kernel log, disks, clock, versions, AWS's notices.

    GPUs are judged by absolute limits and by the cluster's own median (temperatures by that of GPUs at a similar
    load). Versions that differ between nodes are named. util and power are means over a node's GPUs; mem, temp and
    clocks are those of its most loaded, hottest and slowest GPU. The exit code is 4 when a node has a fault or was not
    reached.

    \b
    Examples:
      clusterctl sweep
      clusterctl sweep --probe disk,load
      clusterctl sweep --json | jq -r '.nodes[] | select(.wrong) | .node'
    """
    chosen = chosen_probes(probes)
    inventory = chosen_cluster(cluster)
    nodes = chosen_rows(inventory, node)
    sweep = Sweep(
        inventory=inventory,
        nodes=nodes,
        probes=chosen,
        is_chosen=bool(probes),
        keys=usable_keys(inventory, home_directory(os.environ)),
        connect_timeout_s=connect_timeout,
        timeout_s=timeout,
    )
    if watch is not None:
        sweep_on(sweep, output, every_s=watch, as_json=as_json)
    return sweep_once(sweep, output, as_json=as_json)
