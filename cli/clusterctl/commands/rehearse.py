"""`clusterctl rehearse`: the rehearsed region's own verbs."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

import click

from clusterctl.home import home_directory
from clusterctl.lifecycle.rehearsal_clean import hold_for_clean
from clusterctl.system.processes import become

VERBS = ("region", "list", "bill", "clean", "fault", "env", "image")
"""Of the rehearsal's own program, which knows them; these are for completion alone."""


def complete_verbs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The verbs that a first word may become."""
    return [] if ctx.params.get("words") else [verb for verb in VERBS if verb.startswith(incomplete)]


@click.command("rehearse", add_help_option=False, context_settings={"ignore_unknown_options": True}, options_metavar="")
@click.argument("words", metavar="VERB [ARGS]...", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_verbs)
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
            # A home that is a file would be a region in which nothing is, and nothing bills.
            hold_for_clean(words, home_directory(os.environ), held)
        become([sys.executable, "-m", "clusterctl_rehearsal", *words])
