"""`clusterctl check`: can these nodes start a training together?"""

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
from clusterctl.probes.check import Check
from clusterctl.ssh.remote_command import usable_keys


@click.command("check")
@cluster_option
@node_option(default="all", help=NODES_HELP)
@time_option("--timeout", default="10s", help="How long nodes try to reach each other.")
@connect_timeout_option(default="10s")
@json_option
@click.pass_obj
def command(
    output: Output, cluster: str | None, node: str, timeout: float, connect_timeout: float, as_json: bool
) -> int:
    """Checks what most often keeps a training from starting: names, clocks, TCP, disks, GPU memory.

    Each node listens on a port of jobs, on torchrun's two, and on one of those that NCCL and gloo choose from, and
    connects to these ports of every other node. The nodes need nothing but Python. A port that another program uses is
    reported, not judged. The exit code is 4 when a pair fails, a name means another address, or a node has a fault or
    was not reached.

    \b
    Examples:
      clusterctl check
      clusterctl check --node 0-3 --timeout 30s
      clusterctl check --json | jq -r '.pairs[] | "\\(.from) \\(.to) \\(.port) \\(.why)"'
    """
    inventory = chosen_cluster(cluster)
    check = Check(
        inventory=inventory,
        nodes=chosen_rows(inventory, node),
        keys=usable_keys(inventory, home_directory(os.environ)),
        connect_timeout_s=connect_timeout,
        limit_s=timeout,
    )
    return check.carry_out(output, as_json=as_json)
