"""`clusterctl rehearse`: the rehearsed region's own verbs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack

import click

from clusterctl.home import home_directory
from clusterctl.lifecycle.rehearsal_clean import hold_for_clean
from clusterctl.options import names_of_nodes
from clusterctl.system.other_programs import become

VERBS = ("region", "list", "bill", "clean", "fault", "env", "image")
"""The verbs of the rehearsal's own program, which parses them; this list is only for completion."""
FAULTS = (
    *("kill", "freeze", "thaw", "unplug", "plug", "partition", "reboot", "interrupt", "rebalance", "event"),
    *("fail-bootstrap", "slow", "capacity", "quota", "latency", "new-images", "expire-credentials", "stop-region"),
)
OF_NO_NODE = ("capacity", "quota", "latency", "new-images", "expire-credentials", "stop-region")


def complete_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes a verb, then a fault, then the node that the fault happens to."""
    before = tuple(ctx.params.get("words") or ())
    words: Iterable[str] = ()
    if not before:
        words = VERBS
    elif before == ("fault",):
        words = FAULTS
    elif before[0] == "fault" and before[1] not in OF_NO_NODE:
        words = (name for name in names_of_nodes() if name not in before)
    return [word for word in words if word.startswith(incomplete)]


@click.command("rehearse", add_help_option=False, context_settings={"ignore_unknown_options": True}, options_metavar="")
@click.argument("words", metavar="VERB [ARGS]...", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_words)
def command(words: tuple[str, ...]) -> None:
    """The rehearsed region on this computer: its base image, what it holds, making it fail, ending it.

    \b
    Examples:
      clusterctl rehearse image
      clusterctl rehearse list
      clusterctl rehearse fault kill train-2
      eval "$(clusterctl rehearse env)" && aws ec2 describe-instances
      clusterctl rehearse clean --all
    """
    with ExitStack() as held:
        if "--help" not in words:
            # home_directory refuses a home that is a file, which would look like a region in which nothing bills.
            hold_for_clean(words, home_directory(os.environ), held)
        become([sys.executable, "-P", "-m", "clusterctl_rehearsal", *words])
