"""`clusterctl top`: what every node and GPU does now."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping

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
from clusterctl.ssh.remote_command import usable_keys
from clusterctl.status.ledger import read_ledger
from clusterctl.top.board import Board
from clusterctl.top.feed import start_feeds
from clusterctl.top.one_frame import print_frame

SAMPLES_FOR_A_FRAME = 4


@click.command("top")
@cluster_option
@node_option(default="all", help=NODES_HELP)
@time_option("--interval", default="1s", help="How often the nodes are looked at; one frame takes two looks.")
@connect_timeout_option(default="10s")
@json_option
@click.pass_obj
def command(
    output: Output, cluster: str | None, node: str, interval: float, connect_timeout: float, as_json: bool
) -> int:
    """Shows what every node and GPU does now: utilisation, memory, power, network, cost and time left.

    The keys u m p t w n sort by utilisation, memory, power, temperature, network or node; Enter opens a node, Escape
    goes back, q or Ctrl-C quits. Without a terminal one frame is printed, and the exit code is 4 when a node did not
    answer.

    \b
    Examples:
      clusterctl top
      clusterctl top --json | jq '.nodes[].sample.gpus[].utilization_percent'
    """
    inventory = chosen_cluster(cluster)
    nodes = chosen_rows(inventory, node)
    home = home_directory(os.environ)
    board = Board(nodes)
    start_feeds(
        inventory,
        nodes,
        board,
        keys=usable_keys(inventory, home),
        interval_s=interval,
        connect_timeout_s=connect_timeout,
    )
    ledger = read_ledger(home.ledger_file(inventory.cluster_id))
    if as_json or not (output.stdout_is_terminal and takes_a_screen(os.environ)):
        within_s = connect_timeout + SAMPLES_FOR_A_FRAME * interval
        return print_frame(inventory, board, ledger, output, within_s=within_s, as_json=as_json)
    # Loaded on use: it needs textual, and one frame for a file does not.
    screen = importlib.import_module("clusterctl.top.screen")
    shown: int = screen.TopScreen(inventory, board, ledger, interval_s=interval).show()
    return shown


def takes_a_screen(environ: Mapping[str, str]) -> bool:
    """Whether the terminal can place a cursor, unlike an editor's shell or a build's log, and sends keys."""
    return environ.get("TERM", "dumb") not in ("", "dumb") and sys.stdin.isatty()
