"""`clusterctl check`: can these nodes start a training together?"""

from __future__ import annotations

import os

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.options import (
    NODES_HELP,
    chosen_cluster,
    chosen_rows,
    cluster_option,
    connect_timeout_option,
    count_option,
    json_option,
    node_option,
    time_option,
)
from clusterctl.output import Output
from clusterctl.probes.bandwidth import Bandwidth
from clusterctl.probes.check import Check
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.remote_command import usable_keys


@click.command("check")
@cluster_option
@node_option(default="all", help=NODES_HELP)
@click.option(
    "--bandwidth",
    type=click.Choice(["infiniband"]),
    help="Instead: measure between every two nodes by ib_write_bw, which takes the network's bandwidth meanwhile.",
)
@count_option("--rounds", help="With --bandwidth: only this many rounds; in a round, each node is in at most one pair.")
@time_option("--timeout", default="10s", help="How long nodes try to reach each other, or measure one link.")
@connect_timeout_option(default="10s")
@json_option
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    node: str,
    bandwidth: str | None,
    rounds: int | None,
    timeout: float,
    connect_timeout: float,
    as_json: bool,
) -> int:
    """Checks what most often keeps a training from starting: names, clocks, TCP, disks, GPU memory.

    Each node listens on a port of jobs, on torchrun's two, and on one of those that NCCL and gloo choose from, and
    connects to these ports of every other node. The nodes need nothing but Python. A port that another program uses is
    reported, not judged. The exit code is 4 when a pair fails, a name means another address, or a node has a fault or
    was not reached.

    With --bandwidth infiniband, pairs of nodes write into each other's memory, link by link, until every pair has been
    measured. A link is slow below 95% of the median of links of its rate, or below 90% of the rate. The exit code is 4
    when a link is slow or fails. The nodes need the package perftest.

    \b
    Examples:
      clusterctl check
      clusterctl check --node 0-3 --timeout 30s
      clusterctl check --bandwidth infiniband --rounds 1
      clusterctl check --json | jq -r '.pairs[] | "\\(.from) \\(.to) \\(.port) \\(.why)"'
    """
    if rounds is not None and bandwidth is None:
        hint = f"clusterctl check --bandwidth infiniband --rounds {rounds}"
        raise UsageError(f"--rounds {rounds} means nothing without --bandwidth", hint=hint)
    inventory = chosen_cluster(cluster)
    nodes, keys = chosen_rows(inventory, node), usable_keys(inventory, home_directory(os.environ))
    if bandwidth is not None:
        deadlines = Deadlines.within(connect_timeout)
        measurement = Bandwidth(
            inventory=inventory, nodes=nodes, keys=keys, deadlines=deadlines, limit_s=timeout, rounds=rounds
        )
        return measurement.carry_out(output, as_json=as_json)
    check = Check(inventory=inventory, nodes=nodes, keys=keys, connect_timeout_s=connect_timeout, limit_s=timeout)
    return check.carry_out(output, as_json=as_json)
