"""What is wrong with the storage of a plan, or not in its price."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.plan.case import Case, warning
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.storage_model import EfsPlan, LustrePlan, is_retained


def storage_price_is_known(case: Case) -> Iterator[Problem]:
    """With a budget it is an error, said there."""
    if case.plan.price.storage_usd_per_hour is None and case.plan.deadline.budget_usd is None:
        yield warning("storage", f"{unknown_price(case)}: what this costs per hour is not known")


def use_is_not_in_the_price(case: Case) -> Iterator[Problem]:
    """EFS has no price per hour."""
    nor_budget = ", and no budget ends it" if case.plan.deadline.budget_usd is not None else ""
    for row in case.plan.storage:
        if isinstance(row, EfsPlan) and row.adopted_id is None:
            yield warning("storage", f"{row.mount}: {_efs_bill(case)}; none of it is in the price{nor_budget}")


def storage_outlives_the_deadline(case: Case) -> Iterator[Problem]:
    """Nodes end themselves; file systems cannot."""
    own = [row for row in case.plan.storage if isinstance(row, LustrePlan | EfsPlan) and row.adopted_id is None]
    if not own:
        return
    mounts = ", ".join(row.mount for row in own)
    price = case.plan.price.storage_usd_per_hour
    hourly = "" if not price else f" at ${price:.2f} an hour"
    ended_by = "clusterctl down --all" if any(is_retained(row) for row in own) else "clusterctl down"
    yield warning("storage", f"{mounts}: no deadline ends what holds data; it bills on{hourly} until {ended_by}")


def adopted_file_systems_are_reached(case: Case) -> Iterator[Problem]:
    """The cluster's network is its own: what lies in another one is not reached by itself."""
    nodes = case.plan.network.node_subnet_cidr
    for row in case.plan.storage:
        if isinstance(row, LustrePlan) and row.adopted_id is not None:
            yield warning(
                "storage",
                f"{row.mount}: {row.adopted_id} lies in another network: nodes reach it only if that is peered with "
                f"{case.plan.network.vpc_cidr} and lets TCP 988 and 1018-1023 in from {nodes}",
            )
        if isinstance(row, EfsPlan) and row.adopted_id is not None:
            yield warning(
                "storage",
                f"{row.mount}: {row.adopted_id} gets a mount target in this cluster's network, which AWS refuses "
                "while it has one in another",
            )


def unknown_price(case: Case) -> str:
    """Why the storage's part of the price is unknown."""
    where = f"FSx for Lustre in {case.plan.region}"
    return f"the price of {where} is not in the snapshot of {case.catalog.storage.dated}"


STORAGE_RULES = (
    storage_price_is_known,
    use_is_not_in_the_price,
    storage_outlives_the_deadline,
    adopted_file_systems_are_reached,
)


def _efs_bill(case: Case) -> str:
    price = case.catalog.storage.efs.get(case.plan.region)
    if price is None:
        return "EFS bills what is stored and what is moved"
    return (
        f"EFS bills ${price.stored_usd_per_gib_month:.2f} for each GiB stored a month, "
        f"${price.read_usd_per_gib:.2f} for each read, ${price.written_usd_per_gib:.2f} for each written"
    )
