"""The new end that an `extend` asks for, and why it may be refused. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from clusterctl_infra.config.quantities import LONGEST_RUNTIME, parse_dollars, parse_duration
from clusterctl_infra.errors import CapExceeded, UsageError
from clusterctl_infra.plan.deadline import expenses, spent_usd
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.engine.extended_budget import extended
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.spend_gate import HOUR, Spending
from clusterctl.text.instant import parse_instant
from clusterctl.text.next_commands import extend_again
from clusterctl.text.quantities import clock, duration, usd

AWS_AHEAD = timedelta(minutes=2)
"""The soonest that a deadline may be: EventBridge Scheduler is exact to a minute (its user guide, "Schedule types";
2026-11-21) and takes no time that has passed, and the engine takes a while to change the schedule."""
REHEARSAL_AHEAD = timedelta(seconds=10)
AWS_LEFT, REHEARSAL_LEFT = timedelta(minutes=3), timedelta(seconds=10)
"""How much time has to be left to move a deadline later: a run of the engine and all nodes come first, the schedule
last, and nobody can stop what the schedule has begun."""


@dataclass(frozen=True, kw_only=True)
class DeadlineRequest:
    """What a person asked for; at most one of `by` and `until`."""

    by: timedelta | None = None
    until: datetime | None = None
    budget_usd: float | None = None

    def changes(self, values: Mapping[str, str], *, base: datetime) -> dict[str, str | None]:
        """The settings that ask for this end, to be written over `values`; `base`: the end that holds before it."""
        until = base + self.by if self.by is not None else self.until
        settings: dict[str, str | None] = {"extended-from": base.isoformat()}
        settings |= {} if until is None else {"until": until.isoformat()}
        return settings if self.budget_usd is None else {**settings, **extended(values, self.budget_usd)}

    def again(self, cluster: str, deadline: datetime) -> str:
        """The command that asks for the same end, typed at any later time."""
        is_timed = self.budget_usd is None or self.by is not None or self.until is not None
        budget = None if self.budget_usd is None else f"{self.budget_usd:.2f}"
        return extend_again(cluster, until=deadline if is_timed else None, budget_usd=budget)


@dataclass(frozen=True, kw_only=True)
class Move:
    """A deadline's move: the old end and the new one."""

    before: datetime
    after: datetime

    @property
    def is_later(self) -> bool:
        """Whether the deadline moves later, or stays; then nodes get it before AWS does, because they end first."""
        return self.after >= self.before

    def added(self, cluster_plan: ClusterPlan) -> Spending:
        """What the move adds to the spending; nothing where the end comes earlier."""
        rate = cluster_plan.price.total_usd_per_hour
        longer = max(timedelta(0), self.after - self.before)
        if not longer:
            return Spending(usd_per_hour=0.0, until_deadline_usd=0.0)
        return Spending(usd_per_hour=rate, until_deadline_usd=None if rate is None else rate * (longer / HOUR))


def refuse_move(
    request: DeadlineRequest,
    intent: Intent,
    cluster_plan: ClusterPlan,
    *,
    cluster: str,
    ahead: timedelta,
    now: datetime,
) -> None:
    """Raises UsageError or CapExceeded when the requested end is not possible; `ahead`: the least time until it."""
    until, deadline = intent.settings.until, cluster_plan.deadline
    is_asked = request.by is not None or request.until is not None
    if is_asked and until is not None:
        _refuse_time(until, cluster_plan, cluster=cluster, ahead=ahead, now=now)
    if deadline.budget_usd is None or deadline.budget_at is None:
        return
    if deadline.budget_at <= now + ahead and deadline.reason == "budget":
        raise CapExceeded(
            f"a budget of {usd(deadline.budget_usd)} is below what {cluster_plan.name} has cost: about "
            f"{usd(_spent(intent, cluster_plan, at=now, now=now))} over all runs",
            hint=f"clusterctl cost --cluster {cluster}",
        )
    if is_asked and until is not None and deadline.budget_at < until:
        needed = _spent(intent, cluster_plan, at=until, now=now)
        enough = None if needed is None else str(math.ceil(needed))
        raise CapExceeded(
            f"the budget of {usd(deadline.budget_usd)} is spent at {clock(deadline.budget_at, now)}, before "
            f"{clock(until, now)}: until then it costs about {usd(needed)} over all runs",
            hint=extend_again(cluster, until=until, budget_usd=enough),
        )


def _refuse_time(until: datetime, cluster_plan: ClusterPlan, *, cluster: str, ahead: timedelta, now: datetime) -> None:
    if until <= now:
        raise UsageError(
            f"{clock(until, now)} is {duration(now - until)} ago; to end the cluster now: down",
            hint=f"clusterctl down --cluster {cluster}",
        )
    if until < now + ahead:
        raise UsageError(
            f"{clock(until, now)} is in {duration(until - now)}; a deadline is moved to {duration(ahead)} from now at "
            "the soonest; to end the cluster now: down",
            hint=f"clusterctl down --cluster {cluster}",
        )
    latest = cluster_plan.started_at + LONGEST_RUNTIME
    if until > latest:
        raise UsageError(
            f"{clock(until, now)} is {duration(until - cluster_plan.started_at)} after the start of this run; "
            f"{duration(LONGEST_RUNTIME)} is the most, which is {clock(latest, now)}",
            hint=extend_again(cluster, until=latest, budget_usd=None),
        )


def _spent(intent: Intent, cluster_plan: ClusterPlan, *, at: datetime, now: datetime) -> float | None:
    """What the cluster will have cost at a moment; None when a price is not known."""
    nodes = len(cluster_plan.slots)
    ledger, began = intent.settings.ledger, cluster_plan.started_at
    flow = expenses(cluster_plan.price, ledger, started_at=began, now=now, nodes=nodes)
    return None if flow is None else spent_usd(flow, at)


LEAST_BUDGET_USD = 0.01
T = TypeVar("T")


def typed_request(longer: str | None, until: str | None, budget: str | None, *, now: datetime) -> DeadlineRequest:
    """The request in what was typed; None: not typed.

    Raises UsageError if nothing was typed, if both a time and `--until` were, and for text that cannot be read.
    """
    if longer is None and until is None and budget is None:
        raise UsageError("extend by how much? Give a time, --until or --budget", hint="clusterctl extend 2h")
    if longer is not None and until is not None:
        raise UsageError(f"{longer} and --until {until}: give only one of them", hint="clusterctl extend --help")
    return DeadlineRequest(
        by=_read(longer, parse_duration, "TIME"),
        until=_read(until, lambda text: parse_instant(text, now=now), "--until"),
        budget_usd=_read(budget, _whole_cents, "--budget"),
    )


def _read(text: str | None, parse: Callable[[str], T], name: str) -> T | None:
    try:
        return None if text is None else parse(text)
    except ValueError as e:
        raise UsageError(f"{name} {text!r}: {e}", hint="clusterctl extend --help") from e


def _whole_cents(text: str) -> float:
    """The amount in `text`, to the cent. Raises ValueError."""
    if re.fullmatch(r"-?\d+(\.\d+)?", text.strip(), re.ASCII) and float(text) < LEAST_BUDGET_USD:
        raise ValueError("a budget is at least one cent; clusterctl down ends the cluster now")
    return round(parse_dollars(text), 2)
