"""`clusterctl ssh-config`: a block for ~/.ssh/config."""

from __future__ import annotations

import os
from pathlib import Path

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.options import chosen_cluster, cluster_option
from clusterctl.output import Output
from clusterctl.ssh.installed_config import include_line, install
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.openssh_config import ssh_config_text


@click.command("ssh-config")
@cluster_option
@click.option("--install", "is_installed", is_flag=True, help="Have ~/.ssh/config include all clusters, now and later.")
@click.pass_obj
def command(output: Output, cluster: str | None, is_installed: bool) -> None:
    """Prints a block for ~/.ssh/config, so that ssh, scp, rsync and editors reach the nodes by name.

    Only the keys that the nodes were made with are accepted; they are written to keys/CLUSTER/known_hosts below
    $CLUSTERCTL_HOME. --install writes the blocks of all clusters to ssh_config there, and makes ~/.ssh/config include
    that file in its first line; up, down, extend and replace keep it up to date. To undo it, remove that line and the
    file.

    \b
    Examples:
      clusterctl ssh-config --install && ssh train-2
      clusterctl ssh-config >> ~/.ssh/config
    """
    home = home_directory(os.environ)
    if is_installed:
        if cluster is not None:
            raise UsageError("--install is for all clusters; leave out --cluster", hint="clusterctl ssh-config --help")
        config = Path.home() / ".ssh" / "config"
        is_new = install(home, config.parent)
        output.note(f"{config} {'now includes' if is_new else 'includes'} the nodes: {include_line(home)}")
        return
    inventory = chosen_cluster(cluster)
    known_hosts = write_known_hosts(inventory, home)
    output.data(ssh_config_text(inventory, key_file=login_key_file(inventory, home), known_hosts=known_hosts))
