"""`clusterctl job`: what can be done with one job."""

from __future__ import annotations

import click

from clusterctl.jobs.job_request import VERBS, JobFlags, carry_out
from clusterctl.options import (
    cluster_option,
    connect_timeout_option,
    json_option,
    names_option,
    node_option,
    size_option,
)
from clusterctl.output import Output

HELP = """Shows, follows, cancels or enters one job, from any computer that knows the cluster.

\b
  show    its state, its nodes, and why it ended
  logs    its output; -f follows it
  events  what happened to it, on which node, and when
  attach  follow its output from the start; Ctrl-C asks whether to cancel
  wait    wait until it has ended, without its output
  cancel  stop it by SIGTERM, then SIGKILL; waits until nothing of it is left
  exec    run a command inside it, while it runs: its environment, folder and user
  cp      copy files out of its $CLUSTERCTL_JOB_DIR to a folder here

attach and wait give the job's own exit code, as run does. show, logs and cancel give 0, events 4 when a node was not
reached.

exec runs on the job's first node, on those of --node, or on the node of --rank, with that rank's variables. At a
terminal the command gets a terminal, too, and without a command you get a shell. On one node the exit code is the
command's own, on several 4 when one failed. What exec starts ends with the job.

cp copies everything, or one path below the folder; from several nodes each into a folder named after its node. If a
node's files do not all arrive, or are larger than --limit, none of them is kept.

\b
Examples:
  clusterctl job show train-1123-101500
  clusterctl job logs train-1123-101500 --node 1 --rank 3
  clusterctl job exec train-1123-101500 --rank 3
  clusterctl job exec train-1123-101500 --node all -- nvidia-smi -L
  clusterctl job cp train-1123-101500 checkpoints results/
  clusterctl job cancel train-1123-101500
"""


@click.command("job", help=HELP)
@cluster_option
@node_option(default=None, help="logs, events, exec, cp: these nodes of the job.")
@click.option("--rank", metavar="N", type=click.IntRange(min=0), help="logs, exec: this rank alone.")
@click.option("--attempt", metavar="N", type=click.IntRange(min=1), help="logs: this attempt, not the latest.")
@click.option("-f", "--follow", "is_followed", is_flag=True, help="logs: go on until the job ends.")
@names_option(default=None, usual="--numbers; exec: --names")
@size_option("--limit", default="100GiB", help="cp: the most to take from one node.")
@connect_timeout_option(default="15s")
@json_option
@click.argument("verb", metavar="VERB", type=click.Choice(VERBS))
@click.argument("name", metavar="JOB")
@click.argument("words", metavar="[-- COMMAND | [PATH] DIR]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(
    output: Output,
    cluster: str | None,
    node: str | None,
    rank: int | None,
    attempt: int | None,
    is_followed: bool,
    has_names: bool | None,
    limit: int,
    connect_timeout: float,
    as_json: bool,
    verb: str,
    name: str,
    words: tuple[str, ...],
) -> int:
    flags = JobFlags(
        cluster=cluster,
        node=node,
        rank=rank,
        attempt=attempt,
        is_followed=is_followed,
        names=has_names,
        connect_timeout_s=connect_timeout,
        as_json=as_json,
        verb=verb,
        name=name,
        words=words,
        limit_gib=limit,
    )
    return carry_out(flags, output)
