"""`clusterctl replace`: remake one node."""

from __future__ import annotations

import os

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.lifecycle.replace import ReplaceRequest, replace_node
from clusterctl.options import chosen_nodes, cluster_but_not_hosts, cluster_option, complete_nodes, time_option
from clusterctl.output import Output
from clusterctl.text.next_commands import replace_slot


@click.command("replace")
@cluster_option
@click.option("--node", metavar="N", required=True, shell_complete=complete_nodes, help="The node: 3 or train-3.")
@click.option("--yes", "-y", is_flag=True, help="Do it without being asked.")
@click.option("--force", "is_forced", is_flag=True, help="Even if a job runs on the node: the job is lost.")
@time_option(
    "--ready-timeout",
    default=None,
    help="How long the node may take: 10m (a rehearsal: 2m), 30m for each hook, longer while it makes progress.",
)
@click.pass_obj
def command(
    output: Output, cluster: str | None, node: str, yes: bool, is_forced: bool, ready_timeout: float | None
) -> None:
    """Replaces the machine of one node: same name, same address, an empty disk. The other nodes are not touched.

    Ends when the new node is ready. The other nodes are told about it meanwhile; one that does not answer is named,
    and not waited for.

    \b
    Example:
      clusterctl replace --node 3
    """
    inventory = cluster_but_not_hosts(
        cluster, verb="replace", instead="write another host in cluster.yaml, then clusterctl up"
    )
    slots = chosen_nodes(inventory, node)
    if len(slots) != 1:
        message = f"--node {node} means {len(slots)} nodes: one at a time"
        raise UsageError(message, hint=replace_slot(inventory.cluster, slots[0]))
    request = ReplaceRequest(
        inventory=inventory,
        slot=slots[0],
        is_agreed=yes,
        ready_timeout_s=ready_timeout,
        is_forced=is_forced,
    )
    replace_node(request, output, home_directory(os.environ), os.environ)
