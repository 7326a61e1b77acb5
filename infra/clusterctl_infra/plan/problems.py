"""What is wrong with a plan: each rule is a function that yields errors or warnings, and all are run.

Rules on the configuration alone are in `config.rules`; these need addresses, prices, or what was decided at birth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

from clusterctl_infra.config.quantities import format_duration
from clusterctl_infra.plan.adopted_problems import ADOPTED_RULES
from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.env_advice import copied_variables
from clusterctl_infra.plan.image_problems import IMAGE_RULES
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.money_problems import MONEY_RULES
from clusterctl_infra.plan.mount_clients import mounts_have_clients
from clusterctl_infra.plan.network import ELASTIC_IP_QUOTA, SUBNET_PREFIXES, prefix_for, slot_capacity
from clusterctl_infra.plan.quota_problems import QUOTA_RULES
from clusterctl_infra.plan.spot_problems import SPOT_RULES
from clusterctl_infra.plan.storage_problems import STORAGE_RULES

LONG_REBOOT = timedelta(minutes=15)
"""A choice, not a measurement: machines with terabytes of memory take minutes to start."""
SHORT_IDLE = timedelta(minutes=10)
"""A choice: about as long as a coffee break."""
SHORTEST_RULE = timedelta(seconds=10)
"""A choice: enough to try a rule in a rehearsal. If it were shorter, one look that comes late would end a cluster."""
EVERYBODY = "0.0.0.0/0"


def plan_problems(case: Case) -> tuple[Problem, ...]:
    """Every problem, errors first, in the order of the rules."""
    found = [problem for rule in RULES for problem in rule(case)]
    return tuple(sorted(found, key=lambda problem: problem.level != "error"))


def slot_range_holds_nodes(case: Case) -> Iterator[Problem]:
    network = case.plan.network
    if network.adopted_vpc_id is not None:
        return
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
    if case.config.grouping == "cluster" and not case.instance_type.placement_group_cluster:
        name = case.instance_type.name
        yield error("placement", f"cluster: AWS takes no {name} into a cluster placement group: write placement: none")


def capacity_is_sold(case: Case) -> Iterator[Problem]:
    capacity = "on-demand" if case.plan.capacity == "reservation" else case.plan.capacity
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
    """A zone's name begins with its region's (EC2 User Guide, "Regions and Zones"): it shows a birth elsewhere."""
    region, zone = case.plan.region, case.plan.zone
    if not zone.startswith(region):
        yield error(
            "region",
            f"{region}: this cluster has been in {zone} since its birth and cannot move: every machine would be "
            "replaced; another region is another cluster: clusterctl down --all, then clusterctl up",
        )


def dead_man_is_patient(case: Case) -> Iterator[Problem]:
    allowed = case.config.caps.dead_man
    if allowed is None:
        return
    if allowed < SHORTEST_RULE:
        yield _too_short("caps.dead_man", allowed, usual=LONG_REBOOT)
    elif case.config.nodes == 1:
        yield warning("caps.dead_man", "one node has no others to lose: the rule does nothing")
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
    if caps.idle < SHORTEST_RULE:
        yield _too_short("caps.idle", caps.idle, usual=SHORT_IDLE)
    elif caps.idle >= caps.runtime:
        idle, runtime = format_duration(caps.idle), format_duration(caps.runtime)
        yield warning("caps.idle", f"{idle} is not shorter than runtime, {runtime}: the deadline always comes first")
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
    *ADOPTED_RULES,
    *MONEY_RULES,
    dead_man_is_patient,
    idle_is_patient,
    user_data_fits,
    copied_variables,
    *IMAGE_RULES,
    *QUOTA_RULES,
    *SPOT_RULES,
    *STORAGE_RULES,
    mounts_have_clients,
)


def _too_short(path: str, written: timedelta, *, usual: timedelta) -> Problem:
    """The error for a time that is so short that it is probably a typing error."""
    return error(
        path,
        f"{format_duration(written)}: one look that comes late would end the cluster; at least "
        f"{format_duration(SHORTEST_RULE)}, to try it in a rehearsal, and {format_duration(usual)} or more on AWS",
    )
