"""Asks AWS for today's prices and keeps them in this computer's file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from clusterctl_infra.catalog.fresh_prices import FreshPrice, fresh_prices_text, merged, read_fresh_prices
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.errors import CloudError, UsageError
from clusterctl_infra.provider.local_home import write_private

from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.price_list import ask_prices
from clusterctl.prices.rows import check_region, matching_types
from clusterctl.text.quantities import count


def refresh_prices(catalog: Catalog, words: Sequence[str], *, region: str | None, file: Path, now: datetime) -> str:
    """Asks AWS for prices and keeps them; returns the sentence about what was found.

    Raises UsageError without a region, CloudError when AWS does not answer or names no price.
    """
    if region is None:
        raise UsageError(
            "prices refresh asks about one region: say which", hint="clusterctl prices refresh --region us-west-2"
        )
    check_region(catalog, region)
    types = matching_types(catalog, words)
    found = ask_prices(AwsClients(region=region, endpoint_url=None), types, now=now)
    if not found:
        sold = "it is" if len(types) == 1 else "they are"
        raise CloudError(
            f"AWS names no on-demand price for {', '.join(types)} in {region}: {sold} not sold there",
            code="NoPrice",
            hint=f"clusterctl prices {types[0]}",
        )
    keep_prices(file, found)
    return refresh_summary(types, [row.instance_type for row in found], region=region, file=file)


def keep_prices(file: Path, found: Iterable[FreshPrice]) -> None:
    """Adds prices to this computer's file, which `plan`, `up` and `cost` read. Raises ConfigError, OSError."""
    write_private(file, fresh_prices_text(merged(read_fresh_prices(file), found)))


def refresh_summary(asked: Sequence[str], found: Sequence[str], *, region: str, file: Path) -> str:
    """`38 of 40 prices of us-west-2 are today's, kept in …`, and the types that keep an older one."""
    missing = [name for name in asked if name not in found]
    rest = f"; AWS names none for {', '.join(missing)}: what was known of them stays" if missing else ""
    return f"{len(found)} of {count(len(asked), 'price')} of {region} are today's, kept in {file}{rest}"
