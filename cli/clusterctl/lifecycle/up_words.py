"""What an `up` says before it begins: the cluster in one line, what is odd about its plan, and the price. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cost.after_deadline import bills_a_month_after
from clusterctl.lifecycle.price_age import price_age_text
from clusterctl.lifecycle.spend_gate import spending
from clusterctl.text.headline import machine_words, machines_and_gpus, rehearsed
from clusterctl.text.quantities import clock, duration, usd


def headline(cluster_plan: ClusterPlan, *, is_rehearsal: bool) -> str:
    """`train · us-west-2b · 4 × p5.48xlarge · 32 × H100 80GB (rehearsed: …)`."""
    zone = cluster_plan.chosen_zone or cluster_plan.region
    machines = machines_and_gpus(
        len(cluster_plan.slots), _machine(cluster_plan), cluster_plan.gpus_per_node, cluster_plan.gpu_name
    )
    label = rehearsed(is_rehearsal, cluster_plan.gpus_per_node > 0)
    return f"{cluster_plan.name} · {zone} · {machines}{label}"


def warning_lines(cluster_plan: ClusterPlan, *, overrides: Mapping[str, object]) -> Iterator[str]:
    """A line for each of the plan's problems; they do not stop an `up`."""
    for problem in cluster_plan.problems:
        key = problem.path.rpartition(".")[2]
        place = f"config clusterctl:{key}" if key in overrides else problem.path
        yield f"  warning  {place}: {problem.message}".replace(" : ", " ")


def price_question(
    cluster_plan: ClusterPlan, *, running: int, now: datetime, anew: int = 0, asking: str | None = None
) -> str:
    """`This will run at $221.54/h until 17:22 UTC (4 h 31 m: $1000.00 in all). Create 4 × p5.48xlarge?`."""
    deadline, wanted = cluster_plan.deadline, len(cluster_plan.slots)
    total = spending(cluster_plan, now=now).until_deadline_usd
    budget = "" if deadline.budget_usd is None else f" of a budget of {usd(deadline.budget_usd)}"
    replaced = f", {anew} of them replaced" if anew else ""
    change = f"Change {running} → {wanted} nodes{replaced}?"
    what = change if running else f"Create {wanted} × {_machine(cluster_plan)}?"
    until = f"{clock(deadline.at, now)} ({duration(deadline.at - now)}: {usd(total)} in all{budget})"
    tail = cluster_plan.price.reservation_tail_usd
    after = "" if not tail else f", at worst {usd(tail)} more for a reservation that AWS ends up to 1 h late"
    rate = f"{usd(cluster_plan.price.total_usd_per_hour)}/h"
    most = f"{rate} at most" if cluster_plan.price.spot is not None else rate
    stays = bills_a_month_after(cluster_plan)
    beyond = "" if stays is None else f" After that, {stays}."
    age = price_age_text(cluster_plan, today=now.date())
    first = "" if asking is None else f" {asking}"
    return f"This will run at {most} until {until}{after}.{beyond}{age}{first} {what}"


def _machine(cluster_plan: ClusterPlan) -> str:
    return machine_words(cluster_plan.instance_type, cluster_plan.capacity)
