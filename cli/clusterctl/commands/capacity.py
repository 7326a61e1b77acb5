"""`clusterctl capacity blocks`: what capacity AWS would sell in advance."""

from __future__ import annotations

import os

import click
from clusterctl_infra.catalog.reader import load_catalog

from clusterctl.cloud.block_offerings import ask_offerings
from clusterctl.cloud.clients import AwsClients
from clusterctl.engine.region import region_access
from clusterctl.home import home_directory
from clusterctl.options import json_option
from clusterctl.output import Output
from clusterctl.prices.blocks import block_request, blocks_json, blocks_text, parse_start
from clusterctl.prices.rows import check_region
from clusterctl.text.instant import utc_now


@click.command("capacity")
@click.argument("what", metavar="blocks", type=click.Choice(["blocks"]))
@click.argument("wanted", metavar="TYPE")
@click.option("--region", metavar="REGION", required=True, help="The AWS region.")
@click.option("--nodes", metavar="N", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")
@click.option("--hours", metavar="N", type=click.IntRange(min=1), default=24, show_default=True, help="How long.")
@click.option("--start", metavar="TIME", help="Not before this, such as 2026-12-01T08:00Z; else from now on.")
@click.option("--rehearse", is_flag=True, help="The rehearsed region of this computer instead of AWS.")
@json_option
@click.pass_obj
def command(
    output: Output,
    what: str,
    wanted: str,
    region: str,
    nodes: int,
    hours: int,
    start: str | None,
    rehearse: bool,
    as_json: bool,
) -> None:
    """Lists the capacity blocks that AWS offers now, cheapest first: GPU machines for a fixed time, paid in advance.

    TYPE is an instance type (`p5.48xlarge`) or GPUs (`h100:8`). --hours takes whole days up to 336, then whole weeks up
    to 4368. The price changes with supply and demand, and an offer may be gone a minute later. Nothing is bought here:
    `capacity_block: {find: …}` in cluster.yaml has `up` buy one.

    \b
    Examples:
      clusterctl capacity blocks h100:8 --nodes 4 --hours 24 --region us-west-2
      clusterctl capacity blocks p5.48xlarge --hours 168 --start 2026-12-01T08:00Z --region us-east-1 --json
    """
    home = home_directory(os.environ)
    catalog = load_catalog(home.prices_file)
    check_region(catalog, region)
    starts_from = None if start is None else parse_start(start, now=utc_now())
    asked = block_request(catalog, wanted, nodes=nodes, hours=hours, starts_from=starts_from)
    rehearsed = region_access(home, os.environ) if rehearse else None
    found = ask_offerings(AwsClients.at(rehearsed, region=region), asked)
    if as_json:
        output.json(blocks_json(found))
    else:
        output.data(blocks_text(found, catalog, region=region, is_rehearsal=rehearse))
