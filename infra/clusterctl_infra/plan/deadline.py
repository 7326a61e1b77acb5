"""When a cluster ends: by its run time, when its budget is spent, or before the capacity that it uses ends.

The instant is the same at every `up` of an unchanged cluster: what is open in the ledger runs on; slots that have no
span yet count from the start of the run, or, where others already run, from the instant of the plan; what bills beside
them counts from the start of the first run, or, if its rate has changed, from the instant of the plan. Membership
writes the same into the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.identity import Identity
from clusterctl_infra.ledger import Ledger, StandingKind
from clusterctl_infra.plan.model import DeadlinePlan, DeadlineReason, PricePlan

_SECONDS_PER_HOUR = 3600.0
BLOCK_MARGIN = timedelta(minutes=30)
"""AWS begins to end a block's machines this long before the block ends (EC2 User Guide, "Monitor Capacity Blocks";
2026-11)."""
FAR = datetime(9000, 1, 1, tzinfo=UTC)
"""A budget that lasts longer than this sets no deadline."""


@dataclass(frozen=True, kw_only=True)
class Expense:
    """Money that flows from one instant to another; without an end it flows on."""

    started_at: datetime
    ended_at: datetime | None
    usd_per_hour: float


def deadline_plan(
    config: ClusterConfig,
    price: PricePlan,
    identity: Identity,
    ledger: Ledger,
    *,
    now: datetime,
    nodes: int,
    until: datetime | None = None,
    capacity_ends_at: datetime | None = None,
) -> DeadlinePlan:
    """The earliest end of run time, budget and capacity. A budget with an unknown price sets no end; `money_problems`
    reports it.

    `until`: the end of the run time as `clusterctl extend` set it. `capacity_ends_at`: the end of the reservation or
    block that is used.
    """
    runtime_at = until if until is not None else identity.started_at + config.caps.runtime
    budget_usd = config.caps.budget_usd
    budget_at = None
    if budget_usd is not None:
        flow = expenses(price, ledger, started_at=identity.started_at, now=now, nodes=nodes)
        budget_at = None if flow is None else spent_at(flow, budget_usd)
    ceiling_at = _ceiling(config, capacity_ends_at)
    ends: list[tuple[datetime, DeadlineReason]] = [(runtime_at, "runtime" if until is None else "extend")]
    if budget_at is not None:
        ends.append((budget_at, "budget"))
    if ceiling_at is not None:
        ends.append((ceiling_at, "capacity-block" if config.market == "capacity-block" else "reservation"))
    at, reason = min(ends, key=lambda end: end[0])  # if several are equal, the first: the run time
    return DeadlinePlan(
        at=at,
        reason=reason,
        runtime_at=runtime_at,
        ceiling_at=ceiling_at,
        budget_at=budget_at,
        budget_usd=budget_usd,
    )


def _ceiling(config: ClusterConfig, capacity_ends_at: datetime | None) -> datetime | None:
    """The last moment for nodes on capacity that ends: after a reservation's end, nodes would run on, and bill."""
    if capacity_ends_at is None:
        return None
    return capacity_ends_at - BLOCK_MARGIN if config.market == "capacity-block" else capacity_ends_at


def expenses(
    price: PricePlan, ledger: Ledger, *, started_at: datetime, now: datetime, nodes: int
) -> tuple[Expense, ...] | None:
    """All that the cluster cost and goes on costing; None when a price that counts is unknown.

    A machine that stays is counted at the price that it was made for until `now`, and at the plan's from then on: the
    run may replace it by another type. `started_at`: the start of this run.
    """
    standing = _standing(price, ledger, started_at=started_at, now=now)
    if standing is None:
        return None
    rows: list[Expense] = []
    running: set[int] = set()
    has_open_spans = any(span.ended_at is None for span in ledger.spans)
    for span in ledger.spans:
        rate = span.price_usd_per_hour if span.price_usd_per_hour is not None else price.node_usd_per_hour
        if rate is None:
            return None
        goes_on = span.ended_at is None and span.slot < nodes
        running |= {span.slot} if goes_on else set()
        rate_ahead = _rate_ahead(price, rate)
        if goes_on and rate_ahead == rate:
            rows.append(Expense(started_at=span.started_at, ended_at=None, usd_per_hour=rate))
            continue
        ended_at = span.ended_at or max(now, span.started_at)
        rows.append(Expense(started_at=span.started_at, ended_at=ended_at, usd_per_hour=rate))
        if goes_on:
            rows.append(Expense(started_at=ended_at, ended_at=None, usd_per_hour=rate_ahead))
    missing = nodes - len(running)
    if missing and price.node_usd_per_hour is None:
        return None
    born_at = now if has_open_spans else started_at
    rows += [
        Expense(started_at=born_at, ended_at=None, usd_per_hour=price.node_usd_per_hour or 0.0) for _ in range(missing)
    ]
    return (*rows, *standing)


def _rate_ahead(price: PricePlan, rate: float) -> float:
    """What a machine that was made at `rate` costs from now on, in US dollars per hour.

    A spot machine keeps the maximum price that it was made with until it is replaced, so the higher one counts.
    """
    planned = price.node_usd_per_hour
    if planned is None:
        return rate
    return planned if price.spot is None else max(rate, planned)


def spent_usd(flow: Sequence[Expense], at: datetime) -> float:
    """What was spent until `at`."""
    return sum(row.usd_per_hour * _hours(row, at) for row in flow)


def spent_at(flow: Sequence[Expense], budget_usd: float) -> datetime | None:
    """The last whole second at which no more than the budget is spent; None when it is never spent."""
    marks = sorted({row.started_at for row in flow} | {row.ended_at for row in flow if row.ended_at is not None})
    for begin, end in zip(marks, [*marks[1:], FAR], strict=True):
        rate = sum(row.usd_per_hour for row in flow if _flows_after(row, begin))
        before = spent_usd(flow, begin)
        if before >= budget_usd:
            return _whole_second(begin)
        hours = (budget_usd - before) / rate if rate > 0 else float("inf")
        if hours * _SECONDS_PER_HOUR <= (end - begin).total_seconds():
            return _whole_second(begin + timedelta(hours=hours))
    return None


def _standing(price: PricePlan, ledger: Ledger, *, started_at: datetime, now: datetime) -> tuple[Expense, ...] | None:
    """What bills beside nodes since the first run, also while no node ran; None when a price is unknown."""
    wanted: dict[StandingKind, float | None] = {
        "disks": price.disks_usd_per_hour,
        "addresses": price.addresses_usd_per_hour,
        "gateway": price.gateway_usd_per_hour,
        "storage": price.storage_usd_per_hour,
    }
    rows: list[Expense] = []
    for row in ledger.standing:
        if row.usd_per_hour is None:
            return None
        goes_on = row.ended_at is None and wanted.get(row.kind) == row.usd_per_hour
        if goes_on:
            del wanted[row.kind]
        ended_at = None if goes_on else row.ended_at or max(now, row.started_at)
        rows.append(Expense(started_at=row.started_at, ended_at=ended_at, usd_per_hour=row.usd_per_hour))
    born_at = started_at if ledger.is_empty else now
    for rate in wanted.values():
        if rate is None:
            return None
        rows.append(Expense(started_at=born_at, ended_at=None, usd_per_hour=rate))
    return tuple(rows)


def _hours(row: Expense, at: datetime) -> float:
    end = at if row.ended_at is None else min(at, row.ended_at)
    return max(0.0, (end - row.started_at).total_seconds()) / _SECONDS_PER_HOUR


def _flows_after(row: Expense, instant: datetime) -> bool:
    return row.started_at <= instant and (row.ended_at is None or row.ended_at > instant)


def _whole_second(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)
