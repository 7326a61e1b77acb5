"""`clusterctl env`: what a node's programs find in their environment."""

from __future__ import annotations

import os
import shlex

import click
from clusterctl_infra.errors import ClusterctlError, UsageError

from clusterctl.home import home_directory
from clusterctl.options import (
    chosen_cluster,
    chosen_rows,
    cluster_option,
    connect_timeout_option,
    json_option,
    node_option,
)
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.on_nodes import read_file
from clusterctl.ssh.watchdog import ENVIRONMENT_FILE


@click.command("env")
@cluster_option
@node_option(default="0", help="The node: 2 or train-2.")
@connect_timeout_option(default="15s")
@json_option
@click.pass_obj
def command(output: Output, cluster: str | None, node: str, connect_timeout: float, as_json: bool) -> None:
    """Shows the variables in /etc/clusterctl/env of a node: rank, addresses, counts, your own.

    \b
    Example:
      clusterctl env --node 2 --json | jq -r .MASTER_ADDR
    """
    inventory = chosen_cluster(cluster)
    rows = chosen_rows(inventory, node)
    if len(rows) != 1:
        raise UsageError(f"env shows one node's variables, and --node names {len(rows)}", hint="clusterctl env --help")
    home = home_directory(os.environ)
    text = read_file(inventory, rows[0], ENVIRONMENT_FILE, home=home, deadlines=Deadlines.within(connect_timeout))
    if not as_json:
        output.data(text.rstrip("\n"))
        return
    try:
        output.json(environment_json(text))
    except ValueError as e:
        hint = f"clusterctl env --cluster {inventory.cluster} --node {rows[0].slot}"
        raise ClusterctlError(f"{rows[0].name}:{ENVIRONMENT_FILE} cannot be read: {e}", hint=hint) from e


def environment_json(text: str) -> dict[str, str]:
    """Name → value, with quotes and escapes resolved as a shell would; a value may have several lines.

    Raises ValueError for anything that is not `NAME=value`.
    """
    found = {}
    for word in shlex.split(text, comments=True):
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{word!r} is no NAME=value")
        found[name] = value
    return found
