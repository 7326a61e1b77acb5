"""`clusterctl cp`: files to nodes and back."""

from __future__ import annotations

import os
from pathlib import Path

import click
from clusterctl_infra.errors import UsageError

from clusterctl.copying.copies import copy_all
from clusterctl.copying.place import transfers
from clusterctl.copying.trees import CP_HINT, RsyncWay, folder_copies, sync_all
from clusterctl.home import home_directory
from clusterctl.options import cluster_option, connect_timeout_option, inventory_option
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.machines import chosen_machines
from clusterctl.ssh.remote_command import usable_keys


@click.command("cp")
@cluster_option
@inventory_option
@connect_timeout_option(default="15s")
@click.option("-r", "--recursive", is_flag=True, help="Folders, each under its own name, by rsync as `sync` does.")
@click.argument("words", metavar="SOURCE... TARGET", nargs=-1, required=True)
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    file: Path | None,
    connect_timeout: float,
    recursive: bool,
    words: tuple[str, ...],
) -> int:
    """Copies files to nodes, back, and between nodes; 2:/path, 0,2-5:/path or all:/path is a path on nodes.

    A path without a leading slash is relative to the login user's home. Each copy is verified by SHA-256 and then
    replaces its target in one step, with the permissions of its source. If the target is a link, the file that it
    points to is written. From several nodes each file goes into a folder named after its node. The exit code is 4 when
    some of several copies failed.

    To resume an interrupted copy, type the same command again: what is complete is not copied again. (Until then a
    part lies in .NAME.clusterctl-DIGEST beside the target; if the file has changed, the next copy to that place
    removes it.) A file that grows is copied as it was at first.

    For three or more nodes a file of 16 MB or more is passed on from node to node (not to machines of --inventory).

    \b
    Examples:
      clusterctl cp train.py all:
      clusterctl cp -r src configs all:train/
      clusterctl cp weights.safetensors 0-3:/scratch/
      clusterctl cp 0:/scratch/checkpoint.pt 1-3:/scratch/
      clusterctl cp all:/var/log/clusterctl.log logs/
    """
    inventory = chosen_machines(cluster, file)
    if recursive:
        if file is not None:
            raise UsageError("-r is for clusters: to machines of --inventory, cp takes files", hint=CP_HINT)
        is_up, syncs = folder_copies(words, inventory)
        way = RsyncWay(is_up=is_up, connect_timeout_s=connect_timeout)
        return sync_all(syncs, inventory, way, home=home_directory(os.environ), output=output)
    return copy_all(
        transfers(words, inventory),
        inventory,
        keys=usable_keys(inventory, home_directory(os.environ)),
        deadlines=Deadlines.within(connect_timeout),
        output=output,
    )
