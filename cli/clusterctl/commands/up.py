"""`clusterctl up`: make a stack true and wait until every node is ready."""

from __future__ import annotations

import os
from pathlib import Path

import click
from clusterctl_infra.names import USUAL_STACK_NAME

from clusterctl.lifecycle.up import UpRequest, bring_up
from clusterctl.options import StackFolder, count_option, json_option, time_option
from clusterctl.output import Output


@click.command("up")
@click.argument("stack_dir", metavar="[STACK]", type=StackFolder(), default=".")
@click.option("--stack-name", metavar="NAME", default=USUAL_STACK_NAME, show_default=True, help="The Pulumi stack.")
@click.option("--rehearse", is_flag=True, help="On the stand-in for AWS on this computer: costs nothing.")
@count_option("--nodes", help="Another size, until cluster.yaml says another number.")
@click.option("--yes", "-y", is_flag=True, help="Agree to the price without being asked.")
@click.option("--reorder-ranks", is_flag=True, help="With ranks: topology: order the ranks anew.")
@time_option(
    "--ready-timeout",
    default=None,
    help="How long nodes may take: 10m (a rehearsal: 2m), 30m for each hook, more while they get on.",
)
@json_option
@click.pass_obj
def command(
    output: Output,
    stack_dir: Path,
    stack_name: str,
    rehearse: bool,
    nodes: int | None,
    yes: bool,
    reorder_ranks: bool,
    ready_timeout: float | None,
    as_json: bool,
) -> None:
    """Makes the stack in the folder STACK true: what is missing is made, what is broken is repaired first.

    Ends when every node is ready; exit code 4 when one is not. All or nothing: a new cluster that AWS has no room for
    leaves no node behind, and nothing else but storage that holds data, with its network. On AWS the price is agreed to
    first: above $20 an hour, or $500 until the deadline, by typing the cluster's name. With --json or without a
    terminal nobody is asked, and only --yes agrees. --json prints the nodes at the end. A rehearsal never asks.

    \b
    Examples:
      clusterctl up stacks/train
      clusterctl up stacks/train --rehearse --nodes 2
    """
    request = UpRequest(
        stack_dir=stack_dir,
        stack_name=stack_name,
        rehearse=rehearse,
        nodes=nodes,
        is_agreed=yes,
        ready_timeout_s=ready_timeout,
        reorders_ranks=reorder_ranks,
        as_json=as_json,
    )
    bring_up(request, output, os.environ)
