"""`clusterctl forget`: drop what this computer knows of a cluster that is gone."""

from __future__ import annotations

import os

import click

from clusterctl.home import home_directory
from clusterctl.hosts.down import forget_hosts
from clusterctl.lifecycle.forget import ForgetRequest, forget
from clusterctl.options import chosen_cluster, complete_clusters
from clusterctl.output import Output


@click.command("forget")
@click.argument("cluster", metavar="NAME", shell_complete=complete_clusters)
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="Also if AWS does not say whether machines run, or if hosts are still nodes.",
)
@click.pass_obj
def command(output: Output, cluster: str, yes: bool) -> None:
    """Makes this computer forget the cluster NAME: its addresses and its login key.

    For a cluster that is gone, but was not ended by `down` here: its folder or its state is lost, or another computer
    ended it. AWS is asked first: as long as anything of the cluster bills, nothing is forgotten; if AWS does not
    answer, you are asked. Pulumi's state is not changed.

    \b
    Example:
      clusterctl forget train
    """
    inventory = chosen_cluster(cluster)
    if inventory.is_hosts:
        return forget_hosts(inventory, home_directory(os.environ), is_agreed=yes)
    forget(ForgetRequest(inventory=inventory, is_agreed=yes), output, home_directory(os.environ), os.environ)
