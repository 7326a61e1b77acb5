"""Problems between a configuration and the existing things that it names: a reservation, a block, a network."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import IPv4Network

from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.model import Problem

SHORT_CAPACITY = timedelta(hours=1)


def adopted_type_is_the_nodes_own(case: Case) -> Iterator[Problem]:
    found = case.adopted_capacity
    if found is not None and found.instance_type != case.plan.instance_type:
        yield error(
            _capacity_key(case),
            f"{found.reservation_id} holds {found.instance_type}, but the nodes are {case.plan.instance_type}: write "
            f"instance_type: {found.instance_type}",
        )


def adopted_zones_agree(case: Case) -> Iterator[Problem]:
    """A cluster is in one zone: that of its reservation, of its subnet and of `zone:`."""
    capacity, network, asked = case.adopted_capacity, case.adopted_network, case.config.zone
    if capacity is not None and network is not None and capacity.zone != network.zone:
        yield error(
            "network.adopt.node_subnet_id",
            f"{network.subnet_id} is in {network.zone}, and {capacity.reservation_id} in {capacity.zone}: choose a "
            f"subnet in {capacity.zone}",
        )
    for found, name in ((capacity, _capacity_key(case)), (network, "network.adopt.node_subnet_id")):
        if found is not None and asked is not None and asked != found.zone:
            yield error("zone", f"{asked}: {name} is in {found.zone}; leave zone out")


def adopted_zone_is_the_clusters(case: Case) -> Iterator[Problem]:
    """A reservation or block that a living cluster adopts has to be in the cluster's zone."""
    found = case.adopted_capacity
    zone = case.plan.chosen_zone
    if found is not None and zone is not None and zone != found.zone and case.config.zone is None:
        yield error(
            _capacity_key(case),
            f"{found.reservation_id} is in {found.zone}, and this cluster has been in {zone} since its birth: choose "
            "one there, or make another cluster",
        )


def adopted_range_holds_nodes(case: Case) -> Iterator[Problem]:
    """The range is chosen once, with room to grow."""
    found = case.adopted_network
    if found is None:
        return
    room = IPv4Network(found.slot_cidr).num_addresses
    if case.config.nodes > room:
        yield error(
            "nodes",
            f"{case.config.nodes}: the addresses {found.slot_cidr} in {found.subnet_id}, chosen when the cluster was "
            f"made, hold {room} nodes; for more, end the cluster and make a new one: clusterctl down --all",
        )


def capacity_lasts(case: Case) -> Iterator[Problem]:
    ceiling, deadline = case.plan.deadline.ceiling_at, case.plan.deadline
    if ceiling is None or not case.plan.slots:
        return
    left = ceiling - case.now
    if timedelta(0) < left < SHORT_CAPACITY and deadline.reason in ("reservation", "capacity-block"):
        minutes = int(left.total_seconds() // 60)
        yield warning(_capacity_key(case), f"{case.config.reservation_id} lets the cluster live {minutes} more minutes")


def open_group_is_not_reserved(case: Case) -> Iterator[Problem]:
    """A reservation outside of a placement group promises places, but not places close to each other."""
    found = case.adopted_capacity
    if found is None or case.config.market != "reservation" or found.placement_group is not None:
        return
    if case.plan.placement == "cluster" and case.config.nodes > 1:
        yield warning(
            "placement",
            f"cluster: {found.reservation_id} is in no placement group, so AWS may find no room for all nodes in one; "
            "placement: none needs no room in one",
        )


ADOPTED_RULES = (
    adopted_type_is_the_nodes_own,
    adopted_zones_agree,
    adopted_zone_is_the_clusters,
    adopted_range_holds_nodes,
    capacity_lasts,
    open_group_is_not_reserved,
)


def _capacity_key(case: Case) -> str:
    return "capacity_block" if case.config.capacity_block is not None else "reservation"
