"""`clusterctl run`: a training on many nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from clusterctl.jobs.run_request import RunFlags, carry_out
from clusterctl.on_node.job.launchers import LAUNCHERS
from clusterctl.options import (
    NODES_HELP,
    cluster_option,
    connect_timeout_option,
    count_option,
    environment_option,
    json_option,
    names_option,
    node_option,
    time_option,
)
from clusterctl.output import Output

HELP = """Start a training on many nodes at once, and watch it.

The program and its arguments stand after --, and no shell reads them. A script (.py) is started by torchrun, anything
else as it is, once per node. You may also type a launcher (torchrun, accelerate launch, mpirun, ...), without the
flags that say which nodes and ranks there are. Stdin is /dev/null. The folder --workdir is sent along: what git
tracks, and untracked files that git does not ignore.

JOB.YAML can say all of it instead: the flags' names, and `command`, a list of words (clusterctl schema --job). Flags
that you type override it. Paths in it are relative to it.

--requirements is resolved once, to a lock (uv.lock is one); each node makes an environment for the lock, or reuses
one. --setup runs once on a node for each combination of its line, the files that it names, and the interpreter. Both
run as the login user. Variables of --env-file with TOKEN, KEY, SECRET or PASSWORD in their names are treated as with
--secret.

The job goes on when this command, or this computer, ends. It runs as the login user, without sudo and without the key
to the other nodes. Ctrl-C asks whether to cancel it; without a terminal SIGINT and SIGTERM cancel it, and SIGHUP does
not.

The exit code is 0 when all ranks ended with 0, else that of the rank that failed first (128 + its signal), 124 when
--timeout or the cluster's deadline ended it, 130 when it was cancelled, 255 when nodes were lost; 2, 3, 1 or 255 when
nothing was started.

\b
Examples:
  clusterctl run -- train.py --lr 0.1
  clusterctl run --node 0-1 --nproc 4 --name first -- torchrun --role trainer train.py
  clusterctl run --secret HF_TOKEN --env EPOCHS=3 --detach -- train.py
  clusterctl run --image nvcr.io/nvidia/pytorch:25.06-py3 -- train.py
  clusterctl run --nproc 4 -- mpirun -x DEBUG=1 ./solve
  clusterctl run --launcher plain -- hostname
  clusterctl run --requirements requirements.txt --setup 'nvidia-smi -pm 1' -- train.py
  clusterctl run --node 0-3 job.yaml
"""


class RunCommand(click.Command):
    """A command that tells a program behind `--` apart from a job file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as click does, and also sets the parameter `is_after_dashes`."""
        typed = tuple(args)
        rest = super().parse_args(ctx, args)
        words = ctx.params.get("words") or ()
        ctx.params["is_after_dashes"] = typed[: len(typed) - len(words)][-1:] == ("--",)
        return rest


@click.command("run", cls=RunCommand, context_settings={"allow_interspersed_args": False}, help=HELP)
@cluster_option
@node_option(default="all", help=NODES_HELP)
@click.option("--launcher", metavar="NAME", help=f"{', '.join(LAUNCHERS)}.  [by the program]")
@click.option("--nproc", metavar="N", default="auto", show_default=True, help="Processes on each node; auto: its GPUs.")
@count_option("--gpus", help="Use N GPUs of each node, not whole nodes: other jobs may use the rest.", most=1024)
@time_option("--wait", default=None, help="How long to wait for nodes that other jobs use.")
@click.option("--name", metavar="NAME", help="The job's name.  [the program and the time]")
@environment_option
@click.option(
    "--env-file", metavar="FILE", type=click.Path(path_type=Path), help="Variables from a file, NAME=VALUE lines."
)
@click.option(
    "--secret", "secrets", metavar="NAME", multiple=True, help="A variable of this computer's, kept out of all logs."
)
@click.option(
    "--image", metavar="IMAGE", help="Run the ranks in containers of this image, by the nodes' docker or podman."
)
@click.option(
    "--registry-secret", metavar="NAME", help="A variable of this computer: USER:PASSWORD for the image's registry."
)
@click.option("--workdir", metavar="DIR", type=click.Path(path_type=Path), default=".", help="The folder to send.  [.]")
@click.option("--include", "including", metavar="FILE", multiple=True, help="Send this file even if it looks secret.")
@click.option(
    "--python", metavar="PATH|conda:ENV", help="The interpreter on the nodes, or in the image (a path).  [python3]"
)
@click.option(
    "--requirements",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="In that folder: a requirements.txt, or a pyproject.toml with uv.lock.",
)
@click.option(
    "--setup",
    metavar="LINE",
    help="A shell line, run once on each node before the job starts; with --image for each job, in a container.",
)
@time_option("--timeout", default=None, help="Stop the job after this time: 30m, 12h.")
@time_option("--grace", default="30s", help="The time from SIGTERM to SIGKILL when it is stopped.")
@click.option(
    "--sudo", "is_sudo", is_flag=True, help="Let the job use sudo, and the key to the other nodes; not with --image."
)
@click.option("--detach", "is_detached", is_flag=True, help="Start the job and return.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Show what each node would run; nothing is started.")
@click.option("--yes", "is_agreed", is_flag=True, help="Send a large folder without asking.")
@names_option(default=False, usual="--numbers")
@connect_timeout_option(default="15s")
@json_option
@click.argument("words", metavar="JOB.YAML | -- PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    context: click.Context,
    /,
    is_after_dashes: bool,
    wait: float | None,
    timeout: float | None,
    grace: float,
    connect_timeout: float,
    **flags: Any,  # what click read, by the names that RunFlags gives them
) -> int:
    read = RunFlags(wait_s=wait, timeout_s=timeout, grace_s=grace, connect_timeout_s=connect_timeout, **flags)
    typed = {_RECORD.get(name, name) for name in flags | _RECORD if _is_typed(context, name)}
    output: Output = context.obj
    return carry_out(replace(read, given=frozenset(typed), is_file_meant=not is_after_dashes), output)


_RECORD = {"wait": "wait_s", "timeout": "timeout_s", "grace": "grace_s"}


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name != "words"
