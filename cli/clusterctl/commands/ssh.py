"""`clusterctl ssh`: a command on nodes, or a login."""

from __future__ import annotations

import os

import click

from clusterctl.home import home_directory
from clusterctl.options import (
    chosen_cluster,
    chosen_rows,
    cluster_option,
    connect_timeout_option,
    json_option,
    node_option,
    time_option,
)
from clusterctl.output import Output
from clusterctl.ssh.command_line import command_line
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.login import log_in
from clusterctl.ssh.on_nodes import remote_command, run_on_one, run_on_several


@click.command("ssh", context_settings={"allow_interspersed_args": False})
@cluster_option
@node_option(default="0", help="The nodes: 2, or 0,2-5, or train-2, or all. One node by default: 0.")
@click.option("--command", "line", metavar="LINE", help="A line for the shell on the node.")
@time_option("--timeout", default=None, help="End the command then: 30s, 2m.")
@connect_timeout_option(default="15s")
@click.option("-t", "--tty", is_flag=True, help="A terminal for the command, on one node: for htop and the like.")
@json_option
@click.argument("argv", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    node: str,
    line: str | None,
    timeout: float | None,
    connect_timeout: float,
    tty: bool,
    as_json: bool,
    argv: tuple[str, ...],
) -> int:
    """Run a command on nodes, or log in to one.

    Everything after the options is the command: one word is a line for the shell there, several are
    passed on word by word. Without a command the system's ssh logs in. A host that does not show the
    host key it was made with is refused.

    On one node the exit code is the command's own, 255 when the node was not reached. On several, lines
    carry their node's name, and the exit code is 4 if any node failed. --json gives one line per node.

    \b
    Examples:
      clusterctl ssh --node 2 nvidia-smi
      clusterctl ssh --node 0,2-3 -- test -e /shared/ok
      clusterctl ssh --node all --command 'dmesg | tail -1'
      clusterctl ssh
    """
    inventory = chosen_cluster(cluster)
    nodes = chosen_rows(inventory, node)
    wanted = command_line(argv, line)
    home = home_directory(os.environ)
    if wanted is None or tty:
        log_in(inventory, nodes, wanted, home=home, is_terminal_wanted=tty, connect_timeout_s=connect_timeout)
    remote = remote_command(
        inventory, nodes, wanted, home=home, deadlines=Deadlines.within(connect_timeout), timeout_s=timeout
    )
    is_one_named = len(nodes) == 1 and node.strip() != "all"
    return (run_on_one if is_one_named else run_on_several)(remote, output, as_json=as_json)
