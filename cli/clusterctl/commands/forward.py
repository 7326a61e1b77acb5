"""`clusterctl forward`: a node's port on this computer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.options import chosen_rows, cluster_option, connect_timeout_option, inventory_option, node_option
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.machines import chosen_machines
from clusterctl.ssh.single.forwarding import forward, parse_ports


@click.command("forward")
@cluster_option
@inventory_option
@node_option(default="0", help="The node whose port it is: 2, or train-2.")
@connect_timeout_option(default="15s")
@click.argument("port", metavar="[HERE:]PORT")
@click.pass_obj
def command(
    output: Output, cluster: str | None, file: Path | None, node: str, connect_timeout: float, port: str
) -> NoReturn:
    """Opens a node's port on this computer's 127.0.0.1, for a notebook or TensorBoard, until Ctrl-C.

    No other computer can reach it here. A lost connection is made again. The program on the node may listen on
    localhost alone.

    \b
    Examples:
      clusterctl forward 8888
      clusterctl forward --node 2 9999:6006
    """
    ports = parse_ports(port)
    inventory = chosen_machines(cluster, file)
    nodes = chosen_rows(inventory, node)
    if len(nodes) != 1:
        message = f"forward opens a port of one node, and --node names {len(nodes)}"
        raise UsageError(message, hint="clusterctl forward --help")
    forward(
        inventory,
        nodes[0],
        ports,
        home=home_directory(os.environ),
        deadlines=Deadlines.within(connect_timeout),
        output=output,
    )
