"""What is wrong with a plan: one rule a function, all of them asked, errors and warnings alike.

Rules on the configuration alone are in `config.rules`; these need addresses, prices, or what was decided at birth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

from clusterctl_infra.catalog.fresh_prices import refresh_command
from clusterctl_infra.config.quantities import format_duration
from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.env_advice import copied_variables
from clusterctl_infra.plan.image_problems import IMAGE_RULES
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.network import ELASTIC_IP_QUOTA, SUBNET_PREFIXES, prefix_for, slot_capacity
from clusterctl_infra.plan.quota_problems import QUOTA_RULES
from clusterctl_infra.plan.spot_problems import SPOT_RULES
from clusterctl_infra.plan.storage_problems import STORAGE_RULES, unknown_price

SHORT_BUDGET = timedelta(hours=1)
SHORT_RUNTIME = timedelta(minutes=10)
"""A choice, not a measurement: machines, their boot and a network take minutes, a file system more."""
LONG_REBOOT = timedelta(minutes=15)
"""A choice, not a measurement: machines with terabytes of memory take minutes to start."""
SHORT_IDLE = timedelta(minutes=10)
"""A choice: about a break with a coffee."""
EVERYBODY = "0.0.0.0/0"


def plan_problems(case: Case) -> tuple[Problem, ...]:
    """Every problem, errors first, in the order of the rules."""
    found = [problem for rule in RULES for problem in rule(case)]
    return tuple(sorted(found, key=lambda problem: problem.level != "error"))


def slot_range_holds_nodes(case: Case) -> Iterator[Problem]:
    network = case.plan.network
    capacity = slot_capacity(network.slot_cidr)
    if case.config.nodes <= capacity:
        return
    path = "network.node_subnet_cidr"
    needed = f"/{prefix_for(case.config.nodes)}"
    if prefix_for(case.config.nodes) not in SUBNET_PREFIXES:
        needed = "more than AWS's largest subnet, a /16"
    yield error(
        path,
        f"{network.node_subnet_cidr}: its upper half {network.slot_cidr} holds {capacity} nodes, "
        f"nodes is {case.config.nodes}: that takes {needed}",
    )


def ssh_is_let_in(case: Case) -> Iterator[Problem]:
    access = case.config.access
    if access.mode == "public" and not access.ssh_from:
        yield error(
            "access.ssh_from",
            "empty, so nobody reaches the nodes: write the networks you come from, such as [203.0.113.7/32], "
            "or access: {mode: private}",
        )
    if EVERYBODY in case.plan.network.ssh_cidrs:
        yield warning("access.ssh_from", "0.0.0.0/0 lets the whole internet try to log in")


def private_nodes_are_reached(case: Case) -> Iterator[Problem]:
    access = case.config.access
    if case.plan.network.public_addresses != "none" or access.bastion is not None:
        return
    if case.config.image.startswith("ami-"):
        yield warning(
            "access",
            f"private: nodes are reached through Session Manager, so {case.config.image} needs Amazon's SSM agent; "
            "Amazon's own images have it",
        )


def elastic_addresses_suffice(case: Case) -> Iterator[Problem]:
    nodes = case.config.nodes
    if case.plan.network.public_addresses == "elastic" and nodes > ELASTIC_IP_QUOTA:
        yield warning(
            "access.mode",
            f"public: {nodes} nodes of {case.plan.instance_type} have several interfaces, so each needs an elastic IP; "
            f"AWS gives {ELASTIC_IP_QUOTA} per region by default (up asks for your number before it makes anything); "
            "access: {mode: private} needs one for all",
        )


def fabric_is_there(case: Case) -> Iterator[Problem]:
    if case.instance_type.has_efa or case.config.fabric == "none":
        return
    name = case.instance_type.name
    if case.config.fabric == "required":
        yield error("fabric", f"required: {name} has no EFA; choose a type that has, or write fabric: none")
    elif case.config.nodes > 1:
        yield warning("fabric", f"{name} has no EFA: nodes talk TCP over one plain interface")


def placement_is_possible(case: Case) -> Iterator[Problem]:
    if case.config.placement == "cluster" and not case.instance_type.placement_group_cluster:
        name = case.instance_type.name
        yield error("placement", f"cluster: AWS takes no {name} into a cluster placement group: write placement: none")


def capacity_is_sold(case: Case) -> Iterator[Problem]:
    capacity = case.plan.capacity
    if capacity not in case.instance_type.usage_classes:
        name = case.instance_type.name
        yield error("capacity", f"{capacity}: AWS sells {name} only as {', '.join(case.instance_type.usage_classes)}")


def zone_stays(case: Case) -> Iterator[Problem]:
    asked = case.config.zone
    if asked is not None and asked != case.plan.zone:
        yield error(
            "zone",
            f"{asked}: this cluster has been in {case.plan.zone} since its birth and cannot move; "
            "another zone is another cluster: clusterctl down --all, then clusterctl up",
        )


def region_stays(case: Case) -> Iterator[Problem]:
    """A zone's name begins with its region's (EC2 User Guide, "Regions and Zones"), so a birth elsewhere shows."""
    region, zone = case.plan.region, case.plan.zone
    if not zone.startswith(region):
        yield error(
            "region",
            f"{region}: this cluster has been in {zone} since its birth and cannot move: every machine would be made "
            "anew; another region is another cluster: clusterctl down --all, then clusterctl up",
        )


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
    """With a budget it is an error, said there."""
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
            yield error(
                "caps.budget_usd", f"${deadline.budget_usd or 0:.2f} pays for less than a second of the cluster"
            )
        elif deadline.reason == "budget":
            yield error(
                "caps.budget_usd",
                f"${deadline.budget_usd or 0:.2f} is spent, and {passed}: clusterctl down ends what is left of it; a "
                "higher budget goes on",
            )
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


def dead_man_is_patient(case: Case) -> Iterator[Problem]:
    allowed = case.config.caps.dead_man
    if allowed is None:
        return
    if case.config.nodes == 1:
        yield warning("caps.dead_man", "one node has nobody to see: the rule does nothing")
    elif allowed < LONG_REBOOT:
        yield warning(
            "caps.dead_man",
            f"{format_duration(allowed)}: a large machine may take {format_duration(LONG_REBOOT)} to reboot or to be "
            "replaced; when that is slot 0, all others end",
        )


def idle_is_patient(case: Case) -> Iterator[Problem]:
    caps = case.config.caps
    if caps.idle is None:
        return
    if caps.idle >= caps.runtime:
        told = f"{format_duration(caps.idle)} is not shorter than runtime, {format_duration(caps.runtime)}"
        yield warning("caps.idle", f"{told}: the deadline always comes first")
    elif caps.idle < SHORT_IDLE:
        yield warning(
            "caps.idle", f"{format_duration(caps.idle)}: the cluster ends while somebody thinks about what to run next"
        )


def user_data_fits(case: Case) -> Iterator[Problem]:
    if case.user_data_refusal is not None:
        yield error("", case.user_data_refusal)


RULES: tuple[Callable[[Case], Iterator[Problem]], ...] = (
    slot_range_holds_nodes,
    ssh_is_let_in,
    private_nodes_are_reached,
    elastic_addresses_suffice,
    fabric_is_there,
    placement_is_possible,
    capacity_is_sold,
    zone_stays,
    region_stays,
    price_is_within_cap,
    total_is_within_cap,
    price_is_known,
    price_beside_nodes_is_known,
    price_is_complete,
    budget_can_be_kept,
    time_is_left,
    runtime_is_long_enough,
    dead_man_is_patient,
    idle_is_patient,
    user_data_fits,
    copied_variables,
    *IMAGE_RULES,
    *QUOTA_RULES,
    *SPOT_RULES,
    *STORAGE_RULES,
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
