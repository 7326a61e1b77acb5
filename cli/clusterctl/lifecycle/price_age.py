"""Prices that are too old to be agreed to: an `up` on AWS asks for new ones, or shows how old they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from clusterctl_infra.errors import CloudError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.price_list import ask_prices
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.intent import Intent
from clusterctl.prices.refresh import keep_prices
from clusterctl.prices.rows import age_days
from clusterctl.text.quantities import usd

OLD_DAYS = 60
"""On-demand prices change a few times a year; spot prices of that age say nothing."""


def with_todays_prices(change: Change, intent: Intent, state: StackState, *, now: datetime) -> Intent:
    """The intent with AWS's prices of today, if those that it has are old; unchanged in a rehearsal."""
    if change.is_rehearsal:
        return intent
    file, lives = change.home.prices_file, bool(state.instances)
    return priced_today(change.clients, intent, lives=lives, file=file, now=now, tell=change.output.note)


def priced_today(
    clients: Clients, intent: Intent, *, lives: bool, file: Path, now: datetime, tell: Callable[[str], None]
) -> Intent:
    """The intent with AWS's prices of today where those that it has are old; the new ones are kept in `file`.

    `lives`: the cluster has machines, which are not replaced because of a price: where today's prices would choose
    another type, the old prices stay. They also stay, and a line says so, where AWS does not answer.
    """
    config, before = intent.config, intent.catalog
    chosen = config.instance_type_name(before)
    dated = before.price_dated(chosen, config.region)
    if config.market == "capacity-block" or age_days(dated, now.date()) <= OLD_DAYS:
        return intent
    old = f"  prices   those of {chosen} are of {dated}"
    try:
        found = ask_prices(clients, _types(intent, chosen), now=now)
    except CloudError as e:
        tell(f"{old}, and AWS did not give today's: {e.message}")
        return intent
    after = before.with_prices(found)
    price = after.price_usd_per_hour(chosen, config.region)
    if price is None or after.price_dated(chosen, config.region) == dated:
        tell(f"{old}, and AWS has none that is newer")
        return intent
    other = config.instance_type_name(after)
    if lives and other != chosen:
        tell(f"{old}; by today's, up would choose {other}, but machines run: write instance_type: {chosen}")
        return intent
    keep_prices(file, found)
    tell(f"  prices   AWS was asked, since those here were of {dated}: {chosen} is {usd(price)}/h today")
    return replace(intent, catalog=after)


def price_age_text(cluster_plan: ClusterPlan, *, today: date) -> str:
    """` Prices are of 2026-01, 328 days old.`; empty where they are new enough, or nothing is counted by them."""
    dated = cluster_plan.price.prices_dated
    days = age_days(dated, today)
    is_counted = cluster_plan.capacity != "capacity-block"
    return f" Prices are of {dated}, {days} days old." if days > OLD_DAYS and is_counted else ""


def _types(intent: Intent, chosen: str) -> list[str]:
    """The type, and those among which it was chosen by price."""
    gpus = intent.config.gpus
    rows = intent.catalog.for_gpus(gpus, intent.config.region) if isinstance(gpus, str) else []
    return list(dict.fromkeys([chosen, *(row.name for row in rows)]))
