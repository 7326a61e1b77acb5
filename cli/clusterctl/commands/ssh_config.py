"""`clusterctl ssh-config`: a block for ~/.ssh/config."""

from __future__ import annotations

import os

import click

from clusterctl.home import home_directory
from clusterctl.options import chosen_cluster, cluster_option
from clusterctl.output import Output
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.openssh_config import ssh_config_text


@click.command("ssh-config")
@cluster_option
@click.pass_obj
def command(output: Output, cluster: str | None) -> None:
    """A block for ~/.ssh/config, so that ssh, scp, rsync and editors reach the nodes by name.

    The declared host keys are written to keys/CLUSTER/known_hosts below $CLUSTERCTL_HOME; no other is believed.

    \b
    Example:
      clusterctl ssh-config >> ~/.ssh/config && ssh train-2
    """
    inventory = chosen_cluster(cluster)
    home = home_directory(os.environ)
    known_hosts = write_known_hosts(inventory, home)
    output.data(ssh_config_text(inventory, key_file=login_key_file(inventory, home), known_hosts=known_hosts))
