"""`clusterctl extend`: move the deadline of a cluster that runs."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.lifecycle.deadline_request import typed_request
from clusterctl.lifecycle.extend import ExtendRequest, extend
from clusterctl.options import cluster_but_not_hosts, cluster_option, json_option
from clusterctl.output import Output
from clusterctl.text.instant import tomorrow_note


class ExtendCommand(click.Command):
    """A command that explains why a time such as `-1h` is refused, instead of calling it an unknown option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError for `-1h`."""
        shorter = next((word for word in args if re.fullmatch(r"-(\d+[smhd])+", word)), None)
        if shorter is not None and not ctx.resilient_parsing:
            raise UsageError(
                f"{shorter}: extend only adds time; for an earlier end, give a moment by --until",
                hint="clusterctl extend --until 17:30",
            )
        return super().parse_args(ctx, args)


@click.command("extend", cls=ExtendCommand)
@click.argument("longer", metavar="[TIME]", required=False)
@click.option("--until", metavar="MOMENT", help="The new end, earlier or later: 17:30 or 2026-11-22T08:00, UTC.")
@click.option("--budget", metavar="USD", help="The new budget, over all runs of the cluster.")
@cluster_option
@click.option("--yes", "-y", is_flag=True, help="Agree to the added cost without being asked.")
@json_option
@click.pass_obj
def command(
    output: Output,
    longer: str | None,
    until: str | None,
    budget: str | None,
    cluster: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Moves the deadline: by TIME, to --until a moment, or to when another --budget is spent.

    Until the deadline has moved everywhere, the earlier of the two ends the cluster. A node that did not take the new
    one is named, with what that means, and the exit code is 4. On AWS you agree to the added cost first. A new
    deadline holds for this run. A new budget holds for later runs, too, until the whole cluster is gone; a cluster
    made after that begins with what cluster.yaml says.

    \b
    Examples:
      clusterctl extend 2h
      clusterctl extend --until 17:30
      clusterctl extend --budget 2500
    """
    now = datetime.now(UTC)
    asked = typed_request(longer, until, budget, now=now)
    if (note := tomorrow_note(until, now=now)) is not None:
        output.note(note)
    inventory = cluster_but_not_hosts(cluster, verb="extend", instead="they have no deadline")
    request = ExtendRequest(inventory=inventory, asked=asked, is_agreed=yes, as_json=as_json)
    extend(request, output, home_directory(os.environ), os.environ)
