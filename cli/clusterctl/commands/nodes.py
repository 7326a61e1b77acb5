"""`clusterctl nodes`: the nodes of a cluster, from the inventory alone."""

from __future__ import annotations

import click

from clusterctl.options import chosen_cluster, cluster_option, json_option
from clusterctl.output import Output
from clusterctl.views.nodes import nodes_json, nodes_text


@click.command("nodes")
@cluster_option
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, as_json: bool) -> None:
    """The nodes of a cluster, from the inventory alone: nobody is asked.

    What the nodes do now is `clusterctl status`.

    \b
    Example:
      clusterctl nodes --json | jq -r '.nodes[].private_ip'
    """
    inventory = chosen_cluster(cluster)
    if as_json:
        output.json(nodes_json(inventory))
    else:
        output.data(nodes_text(inventory))
