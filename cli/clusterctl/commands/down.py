"""`clusterctl down`: end a cluster's nodes, or all of it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click
from clusterctl_infra.names import USUAL_STACK_NAME

from clusterctl.engine.whereabouts import find_whereabouts, names_in_state
from clusterctl.home import home_directory
from clusterctl.hosts.down import HostsDown, take_down_hosts
from clusterctl.hosts.folder import recorded_cluster, refuse_flags
from clusterctl.lifecycle.down import DownRequest, take_down
from clusterctl.options import StackFolder, cluster_option
from clusterctl.output import Output


@click.command("down")
@click.argument("stack_dir", metavar="[STACK]", type=StackFolder(), required=False)
@cluster_option
@click.option("--stack-name", metavar="NAME", default=USUAL_STACK_NAME, show_default=True, help="The Pulumi stack.")
@click.option("--rehearse", is_flag=True, help="The cluster that `up --rehearse` made of STACK.")
@click.option("--all", "is_all", is_flag=True, help="End storage, too: the data in it is lost.")
@click.option("--yes", "-y", is_flag=True, help="Do it without being asked.")
@click.pass_obj
def command(
    output: Output,
    stack_dir: Path | None,
    cluster: str | None,
    stack_name: str,
    rehearse: bool,
    is_all: bool,
    yes: bool,
) -> None:
    """Ends the cluster of the folder STACK, or of --cluster: its nodes, and the rest but storage with data.

    Shows what goes, what stays and what that costs. Afterwards it asks AWS again: the exit code is 4, with a list,
    when something still bills.

    down also works on a half-made cluster, after the deadline, and when the machines are gone already. If the state
    cannot be written (a full disk), it ends machines and then reservations by their tags: the exit code is 1, what
    still bills is listed, and the next down ends the rest.

    With `target: hosts`, down removes what `up` wrote on the hosts, and they run on: docs/hosts.md.

    \b
    Examples:
      clusterctl down stacks/train
      clusterctl down --cluster train@rehearsal
    """
    home = home_directory(os.environ)
    hosts = recorded_cluster(stack_dir, cluster, home)
    if hosts is not None:
        refuse_flags(but=("stack_dir", "cluster", "yes"))
        return take_down_hosts(HostsDown(inventory=hosts, is_agreed=yes), output, home)
    where = find_whereabouts(
        stack_dir,
        cluster,
        stack_name=stack_name,
        rehearse=rehearse,
        home=home,
        environ=os.environ,
        in_state=partial(names_in_state, home=home, environ=os.environ),
    )
    take_down(DownRequest(where=where, is_all=is_all, is_agreed=yes), output, home, os.environ)
