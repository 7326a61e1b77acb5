"""Prices that somebody asked AWS for after the shipped snapshot was made, kept in a file on this computer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import ConfigError

SOURCE = "AWS Price List and spot price history, asked by clusterctl prices refresh"


@dataclass(frozen=True, kw_only=True)
class FreshPrice:
    """One type in one region on one day; US dollars per hour, None where AWS named none."""

    instance_type: str
    region: str
    on_demand_usd_per_hour: float | None
    spot_usd_per_hour: float | None
    """The lowest of the region's zones."""
    dated: str
    """ISO date."""


def refresh_command(region: str, instance_type: str) -> str:
    """The command that asks AWS for one price: `clusterctl prices refresh --region us-west-2 p5.48xlarge`."""
    return f"clusterctl prices refresh --region {region} {instance_type}"


def read_fresh_prices(path: Path) -> tuple[FreshPrice, ...]:
    """The rows of the file; none without a file. Raises ConfigError if there is one that cannot be read."""
    try:
        rows = json.loads(path.read_bytes())["prices"]
        return tuple(_price(row) for row in rows)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise ConfigError(
            f"{path}: not a price list that clusterctl wrote ({e}); without the file the shipped prices are used",
            hint=f"rm {path}",
        ) from e


def fresh_prices_text(rows: Iterable[FreshPrice]) -> str:
    """The file's text: what `read_fresh_prices` reads back."""
    listed = sorted(rows, key=lambda row: (row.instance_type, row.region))
    document = {"source": SOURCE, "prices": [vars(row) for row in listed]}
    return json.dumps(document, indent=1) + "\n"


def merged(before: Iterable[FreshPrice], after: Iterable[FreshPrice]) -> tuple[FreshPrice, ...]:
    """The rows of both; a row of `after` replaces one of `before` for the same type and region."""
    rows = {(row.instance_type, row.region): row for row in (*before, *after)}
    return tuple(rows.values())


def _price(row: dict[str, object]) -> FreshPrice:
    return FreshPrice(
        instance_type=str(row["instance_type"]),
        region=str(row["region"]),
        on_demand_usd_per_hour=_positive(row["on_demand_usd_per_hour"]),
        spot_usd_per_hour=_positive(row["spot_usd_per_hour"]),
        dated=str(row["dated"]),
    )


def _positive(value: object) -> float | None:
    if value is None:
        return None
    number = float(str(value))
    if not 0 < number < float("inf"):
        raise ValueError(f"{value!r} is not a price")
    return number
