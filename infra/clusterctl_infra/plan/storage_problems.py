"""What is wrong with the storage of a plan, or not in its price."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.identity import STAND_IN_ID
from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.storage_model import EfsPlan, LustrePlan, is_retained


def storage_price_is_known(case: Case) -> Iterator[Problem]:
    """Warns only without a budget: with one, `budget_can_be_kept` reports an error."""
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
    yield warning("storage", f"{mounts}: the deadline does not end what holds data; it bills{hourly} until {ended_by}")


def adopted_file_systems_are_reached(case: Case) -> Iterator[Problem]:
    """A new network has no way to a file system in another one; a living cluster's network may hold the file system."""
    is_own = case.plan.network.adopted_vpc_id is None
    # The engine's program plans with a stand-in, too, before it has read the identity; a cluster has a ledger by then.
    is_made_new = is_own and case.plan.cluster_id == STAND_IN_ID and case.ledger.is_empty
    for row in case.plan.storage:
        if isinstance(row, LustrePlan) and row.adopted_id is not None and is_own and not is_made_new:
            yield warning("storage", f"{row.mount}: {row.adopted_id} has to be in this cluster's network")
        if isinstance(row, LustrePlan) and row.adopted_id is not None and is_made_new:
            index = [entry.mount for entry in case.config.storage].index(row.mount)
            yield error(
                f"storage[{index}]",
                f"{row.mount}: {row.adopted_id} is in another network, which a network that is made new cannot reach; "
                "write the file system's own as network: {adopt: …}",
            )
        if isinstance(row, LustrePlan) and row.adopted_id is not None and not is_own:
            yield warning(
                "storage",
                f"{row.mount}: the security group of {row.adopted_id} has to let TCP 988 and 1018-1023 in from "
                f"{_nodes_range(case)}; clusterctl does not change it",
            )
        if isinstance(row, EfsPlan) and row.adopted_id is not None and is_own:
            yield warning(
                "storage",
                f"{row.mount}: {row.adopted_id} gets a mount target in this cluster's network, which AWS refuses "
                "while it has one in another",
            )


def links_are_roots_own(case: Case) -> Iterator[Problem]:
    """A node lets all users write at the top of an empty file system; one that is linked to a bucket is not empty."""
    for row in case.plan.storage:
        if isinstance(row, LustrePlan) and (link := row.repository) is not None:
            if row.writable:
                yield warning(
                    "storage",
                    f"{row.mount}: linked to {link.address}, it is not empty when nodes first mount it, so only root "
                    f"may write at its top: a script can open it (chmod 1777 {row.mount})",
                )
            if "DELETED" in link.exports:
                yield warning("storage", f"{row.mount}: deleting a file there deletes it in {link.address}, too")


def unknown_price(case: Case) -> str:
    """Why the storage's part of the price is unknown."""
    where = f"FSx for Lustre in {case.plan.region}"
    return f"the price of {where} is not in the snapshot of {case.catalog.storage.dated}"


def made_file_systems_have_a_subnet(case: Case) -> Iterator[Problem]:
    """In the nodes' subnet AWS would give a file system any free address, a slot's too."""
    network = case.plan.network
    if network.adopted_vpc_id is None or network.adopted_service_subnet_id is not None:
        return
    for row in case.plan.storage:
        if isinstance(row, LustrePlan | EfsPlan) and row.adopted_id is None:
            yield error(
                "storage",
                f"{row.mount}: in the nodes' subnet AWS could give the file system an address of a slot; write another "
                "subnet of the zone as network.adopt.service_subnet_id",
            )


STORAGE_RULES = (
    storage_price_is_known,
    use_is_not_in_the_price,
    storage_outlives_the_deadline,
    adopted_file_systems_are_reached,
    made_file_systems_have_a_subnet,
    links_are_roots_own,
)


def _nodes_range(case: Case) -> str:
    network = case.plan.network
    return network.slot_cidr if network.is_looked_up else f"{network.adopted_node_subnet_id}"


def _efs_bill(case: Case) -> str:
    price = case.catalog.storage.efs.get(case.plan.region)
    if price is None:
        return "EFS bills what is stored and what is moved"
    return (
        f"EFS bills ${price.stored_usd_per_gib_month:.2f} for each GiB stored a month, "
        f"${price.read_usd_per_gib:.2f} for each read, ${price.written_usd_per_gib:.2f} for each written"
    )
