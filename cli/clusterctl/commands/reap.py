"""`clusterctl reap`: what clusters left in the account, and its end."""

from __future__ import annotations

import os
from datetime import timedelta

import click
from clusterctl_infra.errors import UsageError

from clusterctl.home import home_directory
from clusterctl.options import json_option, time_option
from clusterctl.output import Output
from clusterctl.reap.request import ReapRequest, reap
from clusterctl.reap.verdict import Asked


@click.command("reap")
@click.option("--cluster", "clusters", metavar="ID", multiple=True, help="End this one, whatever its deadline.")
@click.option("--data", metavar="ID", multiple=True, help="End this file system or volume, too: its data is lost.")
@click.option("--dry-run", is_flag=True, help="Show only, as without --yes.")
@click.option("--yes", "-y", is_flag=True, help="End what may be ended; nobody is asked.")
@click.option("--region", metavar="REGION", help="Look in this region.  [those of your clusters and AWS settings]")
@click.option("--all-regions", is_flag=True, help="Look in every region of the account.")
@click.option("--anyones", is_flag=True, help="Also end clusters past their deadline that are unknown here.")
@time_option("--grace", default="10m", help="How long past its deadline a cluster has to be.")
@click.option("--rehearse", is_flag=True, help="The rehearsed region of this computer instead of AWS.")
@json_option
@click.pass_obj
def command(
    output: Output,
    clusters: tuple[str, ...],
    data: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    region: str | None,
    all_regions: bool,
    anyones: bool,
    grace: float,
    rehearse: bool,
    as_json: bool,
) -> None:
    """Finds by tag what any cluster left in the account, whoever made it; with --yes ends what may be ended.

    For each cluster it shows age, owner, deadline, dollars a day, and what --yes would do. Only clusters past their
    deadline are ended, and of those only the ones that this computer knows: others may be a colleague's. Data stays,
    with the network that leads to it, unless --data names it.

    The exit code is 4, with a list, when something could not be ended, or not checked again; 1 when a region or a
    service did not answer: what the others list is shown, and ended, all the same.

    \b
    Examples:
      clusterctl reap --all-regions
      clusterctl reap --cluster 0123456789ab --yes
    """
    if dry_run and yes:
        raise UsageError("--dry-run and --yes: give only one of them", hint="clusterctl reap --help")
    asked = Asked(grace=timedelta(seconds=grace), clusters=frozenset(clusters), data=frozenset(data), anyones=anyones)
    request = ReapRequest(
        asked=asked, region=region, all_regions=all_regions, rehearse=rehearse, acts=yes, as_json=as_json
    )
    reap(request, output, home_directory(os.environ), os.environ)
