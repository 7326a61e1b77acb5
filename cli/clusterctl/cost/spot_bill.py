"""What spot machines have cost by the spot prices of their time; their maximum price is only an upper bound. Pure.

AWS bills the price of the moment, by the second, and never more than the maximum (EC2 User Guide, "Spot Instances";
2026-11-22).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from clusterctl.cloud.spot_history import KEPT, SpotPriceChange
from clusterctl.cost.cost_row import HOUR, CostRow
from clusterctl.cost.sighting import Observed

FAR = datetime.max.replace(tzinfo=UTC)


def spot_machines(observed: Observed, instance_type: str, *, now: datetime) -> dict[str, datetime]:
    """Instance id → when it was launched, for all runs' machines that AWS called spot machines of this type.

    Machines are left out if they were launched before the time for which AWS still has prices.
    """
    return {
        id: machine.launched_at
        for id, machine in observed.machines.items()
        if machine.is_spot and machine.instance_type == instance_type and machine.launched_at > now - KEPT
    }


def machines_at_spot_usd(
    rows: Iterable[CostRow], history: Sequence[SpotPriceChange], *, on_spot: Collection[str], now: datetime
) -> float | None:
    """What all machines cost up to `now`; None where a price is not known for the whole of their time.

    `history`: of one instance type, oldest first; `on_spot`: the ids of spot machines of that type. All others count as
    their rows say.
    """
    costs: list[float | None] = []
    for row in rows:
        if row.kind != "node":
            continue
        costs.append(_at_spot(row, history, now=now) if row.instance_id in on_spot else row.spent_usd)
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
