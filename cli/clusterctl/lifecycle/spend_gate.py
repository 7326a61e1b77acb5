"""The question of money before anything is made on AWS: who agrees to what, and whether a `y` is enough."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl_infra.errors import UsageError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.output import Output
from clusterctl.text.quantities import usd

NAME_TYPED_USD_PER_HOUR = 20.0
NAME_TYPED_TOTAL_USD = 500.0
"""Above either, a `y` typed by habit is not enough: the cluster's name has to be typed."""


def why_name_is_typed(cost: Spending) -> str | None:
    """Why the cluster's name has to be typed; None where a `y` will do."""
    if cost.usd_per_hour is None or cost.until_deadline_usd is None:
        return "A price is not known"
    if cost.usd_per_hour > NAME_TYPED_USD_PER_HOUR:
        return f"{usd(cost.usd_per_hour)} an hour is more than {usd(NAME_TYPED_USD_PER_HOUR)}"
    if cost.until_deadline_usd > NAME_TYPED_TOTAL_USD:
        return f"{usd(cost.until_deadline_usd)} in all is more than {usd(NAME_TYPED_TOTAL_USD)}"
    return None


BY_FLAG = "--yes"


def agree(
    output: Output,
    cluster_plan: ClusterPlan,
    *,
    question: str,
    now: datetime,
    shown: str,
    again: str,
    asks: bool,
    agreed_by: str = BY_FLAG,
) -> None:
    """Returns when the person at the terminal agrees to an `up`; `asks` is False where the output is for a program.

    `shown`: the stack, `again`: the whole `up`, both as they are typed.
    `agreed_by`: what agrees where nobody can be asked.

    Raises UsageError when they do not, and when nobody can be asked.
    """
    agree_to(
        output,
        spending(cluster_plan, now=now),
        name=cluster_plan.name,
        question=question,
        bound=f"the caps in {shown}/cluster.yaml bound it: total_usd_per_hour, budget_usd, runtime",
        hint=f"{again} --yes",
        asks=asks,
        agreed_by=agreed_by,
    )


def agree_to(
    output: Output,
    cost: Spending,
    *,
    name: str,
    question: str,
    bound: str,
    hint: str,
    asks: bool,
    agreed_by: str = BY_FLAG,
) -> None:
    """Returns when the person agrees to this spending of the cluster `name`; `bound`: what limits it.

    Raises UsageError.
    """
    if not (asks and output.can_ask):
        why = "there is no terminal to ask at" if asks else "--json never asks"
        offer = question.rpartition(". ")[0] or question
        raise UsageError(
            f"not agreed, since {why}; nothing was changed. {offer}. {agreed_by} agrees to that; {bound}",
            hint=hint,
        )
    why_name = why_name_is_typed(cost)
    if why_name is None:
        is_agreed = output.confirm(question)
    else:
        is_agreed = output.confirm_word(f"{question}\n{why_name}: type the cluster's name, {name}, to agree:", name)
    if not is_agreed:
        raise UsageError("not agreed, nothing was changed", hint=hint)


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
