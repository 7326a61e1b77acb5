"""Problems with what a cluster costs, and with the time that its budget or run time gives it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from clusterctl_infra.catalog.fresh_prices import refresh_command
from clusterctl_infra.config.quantities import format_duration
from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.storage_problems import unknown_price

SHORT_BUDGET = timedelta(hours=1)
SHORT_RUNTIME = timedelta(minutes=10)
"""A choice, not a measurement: machines, their boot and a network take minutes, a file system more."""


def price_is_within_cap(case: Case) -> Iterator[Problem]:
    price = case.plan.price
    cap = price.cap_node_usd_per_hour
    if cap is None:
        return
    if price.node_usd_per_hour is None:
        yield error(
            "caps.price_usd_per_hour", f"${cap:.2f} cannot be kept: {_unknown_price(case)}; leave the cap out to go on"
        )
    elif price.node_usd_per_hour > cap:
        yield error(
            "caps.price_usd_per_hour",
            f"a node of {case.plan.instance_type} costs ${price.node_usd_per_hour:.2f} an hour, the cap is ${cap:.2f}",
        )


def total_is_within_cap(case: Case) -> Iterator[Problem]:
    price, path = case.plan.price, "caps.total_usd_per_hour"
    cap = price.cap_total_usd_per_hour
    if cap is None:
        return
    if price.total_usd_per_hour is None:
        yield error(path, f"${cap:.2f} cannot be kept: {_unknown_price(case)}; leave the cap out to go on")
    elif price.total_usd_per_hour > cap:
        nodes = f"{len(case.plan.slots)} × {case.plan.instance_type}"
        yield error(
            path,
            f"{nodes} with disks, addresses and storage cost ${price.total_usd_per_hour:.2f} an hour, the cap is "
            f"${cap:.2f}: fewer nodes, or a higher cap",
        )


def price_is_known(case: Case) -> Iterator[Problem]:
    price = case.plan.price
    if price.node_usd_per_hour is None and price.cap_node_usd_per_hour is None:
        yield warning("caps", f"{_unknown_price(case)}: what this costs per hour is not known")


def price_beside_nodes_is_known(case: Case) -> Iterator[Problem]:
    """Warns only without a budget: with one, `budget_can_be_kept` reports an error."""
    price = case.plan.price
    if None in (price.disks_usd_per_hour, price.gateway_usd_per_hour) and case.plan.deadline.budget_usd is None:
        yield warning("region", f"{_unknown_charge(case)}: what this costs per hour is not known")


def price_is_complete(case: Case) -> Iterator[Problem]:
    if case.plan.network.public_addresses == "none":
        yield warning(
            "access.mode",
            "private: what the NAT gateway carries is not in the price (about $0.05 for each GB)",
        )


def budget_can_be_kept(case: Case) -> Iterator[Problem]:
    deadline = case.plan.deadline
    if deadline.budget_usd is None or case.plan.price.total_usd_per_hour is not None:
        return
    yield error(
        "caps.budget_usd",
        f"${deadline.budget_usd:.2f} cannot be kept: {_unknown_price(case)}; leave the budget out to go on",
    )


def time_is_left(case: Case) -> Iterator[Problem]:
    deadline = case.plan.deadline
    if not case.plan.slots:
        return
    left = deadline.at - case.now
    if left <= timedelta(0):
        passed = f"the cluster's deadline has passed ({deadline.at:%Y-%m-%d %H:%M} UTC, {deadline.reason})"
        if deadline.reason == "budget" and case.plan.started_at >= case.now:
            yield error("caps.budget_usd", f"${deadline.budget_usd or 0:g} pays for less than a second of the cluster")
        elif deadline.reason == "budget":
            yield error(
                "caps.budget_usd",
                f"${deadline.budget_usd or 0:.2f} is spent, and {passed}: clusterctl down ends what is left of it; a "
                "higher budget lets it continue",
            )
        elif deadline.reason in ("reservation", "capacity-block"):
            key = "capacity_block" if case.config.capacity_block is not None else "reservation"
            yield error(key, f"{passed}: {case.config.reservation_id} lasts no longer")
        else:
            yield error("caps.runtime", f"{passed}: clusterctl down ends what is left of it")
    elif deadline.reason == "budget" and left < SHORT_BUDGET and deadline.budget_usd is not None:
        minutes = int(left.total_seconds() // 60)
        yield warning("caps.budget_usd", f"${deadline.budget_usd:.2f} pays for {minutes} more minutes")


def runtime_is_long_enough(case: Case) -> Iterator[Problem]:
    runtime = case.config.caps.runtime
    if runtime < SHORT_RUNTIME:
        yield warning(
            "caps.runtime",
            f"{format_duration(runtime)}, counted from creation: the cluster may end before its nodes are ready",
        )


MONEY_RULES = (
    price_is_within_cap,
    total_is_within_cap,
    price_is_known,
    price_beside_nodes_is_known,
    price_is_complete,
    budget_can_be_kept,
    time_is_left,
    runtime_is_long_enough,
)


def _unknown_price(case: Case) -> str:
    price = case.plan.price
    if price.node_usd_per_hour is None:
        where = f"{case.plan.instance_type} in {case.plan.region}"
        ask = refresh_command(case.plan.region, case.plan.instance_type)
        return f"the price of {where} is not in the snapshot of {price.prices_dated} ({ask} asks AWS)"
    return unknown_price(case) if price.storage_usd_per_hour is None else _unknown_charge(case)


def _unknown_charge(case: Case) -> str:
    """Why the part of the price beside nodes and storage is unknown."""
    what = "root disks (gp3)" if case.plan.price.disks_usd_per_hour is None else "a NAT gateway"
    return f"the price of {what} in {case.plan.region} is not in the snapshot of {case.catalog.charges_dated}"
