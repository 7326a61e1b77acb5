"""`clusterctl ssh`: a command on nodes, or a login."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.output import Output
from clusterctl.ssh.arguments import SshCommand, requested, ssh_arguments
from clusterctl.ssh.on_nodes import carry_out
from clusterctl.system.caller import this_process

if TYPE_CHECKING:
    from clusterctl.ssh.fanout.link_pool import LinkPool

HELP = """Run a command on nodes, or log in to one.

Everything after the options is the command: one word is a line for the shell there, several words are passed on as
they are, a single - is a script from stdin. If the first word is a node's name, such as train-2, the rest runs on that
node; if it is the name of a job that this computer started, the job's cluster is meant, and options may follow. A
command with such a name stands after --. Every node gets all of stdin; for several nodes it must fit into $TMPDIR.
Without a command the system's ssh logs in. With --sudo the node's variables are set, too.

A node whose host key is not the one that it was made with is refused. The command ends when clusterctl does, also
when the network is cut; with -t it ends by Ctrl-C, or by SIGHUP when the connection ends or the network has been
gone for 45 s.

On one node the exit code is the command's own, 255 when the node was not reached, or the command was ended at
--timeout. On several, each line begins with its node's name, as in [train-0] (with --numbers: [Node 0]). The exit code
is 4 if any node failed. --json prints one line per node.

\b
Examples:
  clusterctl ssh train-2
  clusterctl ssh train-2 nvidia-smi
  clusterctl ssh --gather uname -r
  clusterctl ssh --node 0,2-3 -- test -e /shared/ok
  clusterctl ssh --node all --command 'df -h / | tail -1'
  clusterctl ssh my-job --node 1 --command nvidia-smi
  clusterctl ssh --sudo - < setup.sh
  clusterctl ssh
"""


@click.command("ssh", cls=SshCommand, help=HELP)
@ssh_arguments
@click.pass_obj
def command(output: Output, /, **flags: Any) -> int:  # Any: what click read, by the names that `requested` gives them
    return carry_out(requested(**flags), output, this_process(), keep=partial(_keep, output))


def _keep(output: Output, pool: LinkPool, folder: Path) -> None:
    """Leaves a process behind that has the connections. Loaded on use: by now the person reads what the nodes said."""
    why_not = importlib.import_module("clusterctl.ssh.broker.process").keep_warm(pool, folder)
    if why_not is not None:
        output.note(f"clusterctl: {why_not}")
