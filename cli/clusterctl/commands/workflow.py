"""`clusterctl workflow`: workflows in OSMO's file format."""

from __future__ import annotations

import re
from typing import Any

import click

from clusterctl.options import StackFolder, cluster_option, connect_timeout_option, environment_pairs, json_option
from clusterctl.output import Output
from clusterctl.workflows.request import VERBS, WorkflowFlags, carry_out

HELP = """Runs workflows in OSMO's file format: groups of tasks, each a job on a node.

\b
  validate  FILE  report everything that is wrong with it; nothing is started
  spec      FILE  print the file with its template rendered
  submit    FILE  start its groups in their order, and stay until the last one has ended
  list            the workflows of a cluster, as its nodes know them
  show      ID    the states of its groups and tasks
  logs      ID    the output of its tasks; -f follows it
  cancel    ID    stop its running tasks
  exec      ID TASK [-- COMMAND]  run a command inside a task, as job exec does

submit starts each group when its turn comes, so it has to stay: if it is killed, running tasks go on, and no further
group is started. Its exit code is 0 when all groups have completed, else that of the task that ended its group; 130
when it was cancelled.

\b
Examples:
  clusterctl workflow validate train.yaml
  clusterctl workflow spec train.yaml --set n_nodes=4 n_gpus_per_node=4
  clusterctl workflow submit train.yaml --set n_nodes=4
  clusterctl workflow submit train.yaml --up stacks/train --rehearse
  clusterctl workflow logs train-3f9a --task master -f
  clusterctl workflow exec train-3f9a master -- ls /tmp
"""
SEVERAL = ("--set", "--set-string", "--set-env")
"""Flags that may be followed by several NAME=VALUE, as on OSMO's command line."""
PAIR = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


class WorkflowCommand(click.Command):
    """A command whose `--set a=1 b=2` means `--set a=1 --set b=2`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_repeated_flags(args))


def with_repeated_flags(args: list[str]) -> list[str]:
    """The arguments with the flag repeated before each of its values."""
    found: list[str] = []
    flag, is_first = None, False
    for place, word in enumerate(args):
        if word == "--":
            return [*found, *args[place:]]
        if flag is not None and not is_first and PAIR.fullmatch(word):
            found += [flag, word]
            continue
        found.append(word)
        if word in SEVERAL:
            flag, is_first = word, True
        elif is_first:
            is_first = False
        else:
            flag = None
    return found


@click.command("workflow", cls=WorkflowCommand, help=HELP)
@click.option("--set", "settings", metavar="K=V", multiple=True, help="A value of the template: a number, else text.")
@click.option("--set-string", "setting_texts", metavar="K=V", multiple=True, help="A value of the template, as text.")
@click.option(
    "--set-env",
    "environment",
    metavar="K=V",
    multiple=True,
    callback=environment_pairs,
    help="A variable for all tasks.",
)
@cluster_option
@click.option(
    "--up", metavar="STACK", type=StackFolder(), help="submit: bring this folder's cluster up first, as `up` does."
)
@click.option("--rehearse", is_flag=True, help="--up: on this computer instead of AWS, at no cost.")
@click.option("--yes", "-y", is_flag=True, help="--up: agree to the price without being asked.")
@click.option("--on-host", "is_on_host", is_flag=True, help="submit: on the nodes as they are, not in images.")
@click.option(
    "--registry-secret",
    "registry_secrets",
    metavar="[REGISTRY=]NAME",
    multiple=True,
    help="submit: a variable of this computer that has USER:PASSWORD for the images' registry, or for REGISTRY.",
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="submit: show where each task would run, and what.")
@click.option("--task", metavar="NAME", help="logs: of this task alone.")
@click.option("-f", "--follow", "is_followed", is_flag=True, help="logs: go on until the tasks have ended.")
@connect_timeout_option(default="15s")
@json_option
@click.argument("verb", metavar="VERB", type=click.Choice(VERBS))
@click.argument("words", metavar="FILE|ID [TASK]", nargs=-1)
@click.pass_obj
def command(
    output: Output,
    /,
    connect_timeout: float,
    **flags: Any,  # what click read, by the names that WorkflowFlags gives them
) -> int:
    return carry_out(WorkflowFlags(connect_timeout_s=connect_timeout, **flags), output)
