"""The table of `clusterctl prices`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from clusterctl.prices.rows import PriceRow
from clusterctl.text.quantities import UNKNOWN, count
from clusterctl.text.table import render_table

DAYS_PER_MONTH = 30
RIGHT = {"gpus", "$/h", "$/gpu h", "spot $/h"}
SPOT = "spot: the lowest of the region's zones on that day, to compare: a cluster is counted at its maximum price"


def prices_text(rows: Sequence[PriceRow], *, with_spot: bool) -> str:
    """The table, and how old its prices are."""
    header = ["type", "region", "gpus", "$/h", "$/gpu h", *(["spot $/h"] if with_spot else []), "dated"]
    table = render_table(header, [_cells(row, with_spot=with_spot) for row in rows], right=RIGHT)
    return f"{table}\n  {about(rows, with_spot=with_spot)}"


def prices_json(rows: Sequence[PriceRow]) -> list[dict[str, object]]:
    """What `clusterctl prices --json` prints; unknown prices are null."""
    return [dataclasses.asdict(row) for row in rows]


def about(rows: Sequence[PriceRow], *, with_spot: bool) -> str:
    """What the prices are, and their age."""
    if not rows:
        return "no price is known in any region; next: clusterctl prices refresh --region us-west-2  (or another one)"
    oldest = max(rows, key=lambda row: row.age_days)
    spot = f"; {SPOT}" if with_spot else ""
    return f"AWS list prices, Linux, on demand{spot}; the oldest are of {oldest.dated}, {age(oldest.age_days)} old"


def age(days: int) -> str:
    """`3 days`, `10 months`."""
    return count(days, "day") if days < 2 * DAYS_PER_MONTH else count(days // DAYS_PER_MONTH, "month")


def _cells(row: PriceRow, *, with_spot: bool) -> list[str]:
    gpus = str(row.gpus) if row.gpus else ""
    price = row.on_demand_usd_per_hour
    per_gpu = "" if price is None or not row.gpus else _price(price / row.gpus)
    spot = [_price(row.spot_usd_per_hour)] if with_spot else []
    return [row.instance_type, row.region, gpus, _price(price), per_gpu, *spot, row.dated]


def _price(amount: float | None) -> str:
    """A price with two decimals; below a dollar with four, since small machines cost less than a cent."""
    return UNKNOWN if amount is None else f"${amount:.4f}" if amount < 1 else f"${amount:.2f}"
