"""`clusterctl sync`: folders to nodes and back."""

from __future__ import annotations

import os

import click

from clusterctl.copying.trees import RsyncWay, refuse_emptied_home, sync_all, tree_syncs
from clusterctl.home import home_directory
from clusterctl.options import chosen_cluster, cluster_option, connect_timeout_option, time_option
from clusterctl.output import Output


@click.command("sync")
@cluster_option
@click.option("--delete", "is_deleting", is_flag=True, help="Remove there what is not in the source.")
@click.option("--exclude", "excluded", metavar="PATTERN", multiple=True, help="Leave these out, as rsync reads it.")
@click.option(
    "--preserve", "is_preserving", is_flag=True, help="From nodes: keep owners, setuid bits and devices, as rsync -a."
)
@time_option("--timeout", default="60s", help="Give up when nothing at all has moved for this long.")
@connect_timeout_option(default="15s")
@click.argument("source")
@click.argument("target")
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    is_deleting: bool,
    excluded: tuple[str, ...],
    is_preserving: bool,
    timeout: float,
    connect_timeout: float,
    source: str,
    target: str,
) -> int:
    """Makes folders on nodes, or here, like another one, by rsync: it sends only what differs, and resumes.

    Paths on nodes are written as for cp. As with rsync, a slash at the end of a source means its content. From several
    nodes each folder goes into one named after its node. rsync must be installed here and on the nodes.

    \b
    Examples:
      clusterctl sync src/ all:train/src/
      clusterctl sync --exclude '*.tmp' all:/scratch/run/ runs/
    """
    inventory = chosen_cluster(cluster)
    is_up, syncs = tree_syncs(source, target, inventory)
    if is_up and is_deleting:
        refuse_emptied_home(syncs, inventory.ssh.user)
    way = RsyncWay(
        is_up=is_up,
        is_deleting=is_deleting,
        is_preserving=is_preserving,
        excluded=excluded,
        silence_s=timeout,
        connect_timeout_s=connect_timeout,
    )
    return sync_all(syncs, inventory, way, home=home_directory(os.environ), output=output)
