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
    """Files to nodes, back, and from node to node; a place on nodes is written 2:/path, 0,2-5:/path or all:/path.

    A path that does not begin with a slash is below the login user's home. A file is gathered beside its
    target, checked by SHA-256, and put in place at once, with the permission bits of its source, over an older
    one too. A link as the target stays, and what it points to is written. From several nodes each file comes
    into a folder named after its node. The exit code is 4 when some of several copies failed.

    The same command goes on where a broken one stopped, in .NAME.clusterctl-DIGEST beside the target, and copies
    nothing that is there already. Where the file has changed meanwhile, the next copy to that place removes what
    the broken one had left. Of a file that grows comes what it was at first.

    A file of 16 MB or more for three nodes or more goes from here to one of them, and from there on from node
    to node; one that fails is left out, and the others get it from another. Machines of --inventory get it from here.

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
