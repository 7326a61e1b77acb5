"""What a plan will cost from now to its deadline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl_infra.plan.model import ClusterPlan

HOUR = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What will be spent until the deadline, in US dollars; None: a price is not known."""

    usd_per_hour: float | None
    until_deadline_usd: float | None


def spending(cluster_plan: ClusterPlan, *, now: datetime) -> Spending:
    """The rate of the plan, and what it comes to from now to the deadline."""
    rate = cluster_plan.price.total_usd_per_hour
    left = max(timedelta(0), cluster_plan.deadline.at - now)
    return Spending(usd_per_hour=rate, until_deadline_usd=None if rate is None else rate * (left / HOUR))
