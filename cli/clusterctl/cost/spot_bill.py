"""What spot machines cost by the prices of their time, where their maximum is only a bound. Pure.

AWS bills the price of the moment, by the second, and never more than the maximum (EC2 User Guide, "Spot Instances";
2026-11-22).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from clusterctl.cloud.spot_history import SpotPriceChange
from clusterctl.cost.cost_row import HOUR, CostRow

FAR = datetime.max.replace(tzinfo=UTC)


def machines_at_spot_usd(
    rows: Iterable[CostRow],
    history: Sequence[SpotPriceChange],
    *,
    types: Mapping[str, str | None],
    instance_type: str,
    since: datetime,
    now: datetime,
) -> float | None:
    """What all machines cost up to `now`; None where a price is not known for the whole of their time.

    `history`: of `instance_type`, oldest first. Machines of another type, by `types` (instance id → type), and those
    made before `since`, when the run began, count as their rows say: they may not be spot machines.
    """
    costs: list[float | None] = []
    for row in rows:
        if row.kind != "node":
            continue
        is_known = row.started_at >= since and types.get(row.instance_id or "") == instance_type
        costs.append(_at_spot(row, history, now=now) if is_known else row.spent_usd)
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def _at_spot(row: CostRow, history: Sequence[SpotPriceChange], *, now: datetime) -> float | None:
    began, until = row.started_at, min(now, row.ended_at or now)
    if not history or began < history[0].at:
        return None
    most = math.inf if row.usd_per_hour is None else row.usd_per_hour
    return math.fsum(min(price, most) * (lived / HOUR) for price, lived in _pieces(history, began, until))


def _pieces(history: Sequence[SpotPriceChange], began: datetime, until: datetime) -> Iterator[tuple[float, timedelta]]:
    """Each price, with the time that it held between the two instants."""
    ends = [*(change.at for change in history[1:]), FAR]
    for change, end in zip(history, ends, strict=True):
        lived = min(end, until) - max(change.at, began)
        if lived > timedelta(0):
            yield change.usd_per_hour, lived
