"""`clusterctl prices`: what machines cost, and how old that knowledge is."""

from __future__ import annotations

import importlib
import os
from datetime import UTC, datetime

import click
from clusterctl_infra.catalog.reader import load_catalog

from clusterctl.home import home_directory
from clusterctl.options import json_option
from clusterctl.output import Output
from clusterctl.prices.rows import price_rows
from clusterctl.prices.view import prices_json, prices_text

REFRESH = "refresh"


@click.command("prices")
@click.argument("words", metavar="[refresh] [TYPE]...", nargs=-1)
@click.option("--region", metavar="REGION", help="In this region alone.")
@click.option("--spot", is_flag=True, help="Spot prices too, to compare.")
@json_option
@click.pass_obj
def command(output: Output, words: tuple[str, ...], region: str | None, spot: bool, as_json: bool) -> None:
    """Shows what instance types cost per hour, from dated list prices.

    TYPE is an instance type (`p5.48xlarge`), a family (`p5`) or a GPU (`h100`).

    The prices were shipped with clusterctl. `prices refresh --region REGION` asks AWS for today's and keeps them on
    this computer, where plan, up and cost use them from then on. A price that is not known is `unknown`, never 0, and
    caps and budgets are refused then.

    \b
    Examples:
      clusterctl prices p5 --region us-west-2 --spot
      clusterctl prices refresh --region us-west-2 p5.48xlarge
    """
    home, now = home_directory(os.environ), datetime.now(UTC)
    catalog = load_catalog(home.prices_file)
    if words[:1] == (REFRESH,):
        # Loaded on use: it needs botocore, and a list of known prices does not.
        refresh = importlib.import_module("clusterctl.prices.refresh").refresh_prices
        words = words[1:]
        output.note(refresh(catalog, words, region=region, file=home.prices_file, now=now))
        catalog = load_catalog(home.prices_file)
    rows = price_rows(catalog, words, region=region, today=now.date())
    if as_json:
        output.json(prices_json(rows))
    else:
        output.data(prices_text(rows, with_spot=spot))
