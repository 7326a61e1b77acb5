"""`clusterctl nodes`: the nodes of a cluster, from the inventory alone."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import click
from clusterctl_infra.names import USUAL_STACK_NAME
from clusterctl_infra.outputs import Inventory

from clusterctl.home import home_directory
from clusterctl.options import StackFolder, chosen_cluster, cluster_option, json_option
from clusterctl.output import Output
from clusterctl.status.nodes_table import nodes_json, nodes_text


@click.command("nodes")
@cluster_option
@click.option("--stack", "stack_dir", metavar="STACK", type=StackFolder(), help="Ask the stack in this folder.")
@click.option(
    "--stack-name", metavar="NAME", default=USUAL_STACK_NAME, show_default=True, help="With --stack: which one."
)
@click.option("--rehearse", is_flag=True, help="With --stack: the one made by `up --rehearse`.")
@json_option
@click.pass_obj
def command(
    output: Output, cluster: str | None, stack_dir: Path | None, stack_name: str, rehearse: bool, as_json: bool
) -> None:
    """Lists the nodes of a cluster, from what this computer knows: nobody is asked.

    `clusterctl status` shows what the nodes do now. On a computer that never ran the stack, --stack reads the stack's
    outputs once and keeps them.

    \b
    Example:
      clusterctl nodes --json | jq -r '.nodes[].private_ip'
    """
    inventory = chosen_cluster(cluster) if stack_dir is None else _fetched(stack_dir, stack_name, rehearse)
    if as_json:
        output.json(nodes_json(inventory))
    else:
        output.data(nodes_text(inventory))


def _fetched(stack_dir: Path, stack_name: str, rehearse: bool) -> Inventory:
    # Loaded on use: without --stack nobody asks the engine.
    fetch = importlib.import_module("clusterctl.engine.fetch_inventory").fetch_inventory
    home = home_directory(os.environ)
    inventory: Inventory = fetch(stack_dir, stack_name=stack_name, rehearse=rehearse, home=home, environ=os.environ)
    return inventory
