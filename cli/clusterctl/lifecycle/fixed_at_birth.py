"""Refuses to change what is decided when a cluster is made: region, network addresses, placement and capacity."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.launch import launch_changes, launch_facts
from clusterctl_infra.names import HOME_VARIABLE, IDENTITY_TYPE, INVENTORY_TYPE
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.engine.state import PLACEMENT_GROUP_TYPE, StackState
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import count

NETWORK = "clusterctl:infra:Network$aws:ec2/"
"""In the URN of everything that the cluster's network is made of; a person's own program may have others."""
CAPACITY = "clusterctl:infra:Capacity$"
"""In the URN of the cluster's placement group and of its reservation."""


def refuse_other_region(state: StackState, region: str, *, source: str) -> None:
    """Raises UsageError when the cluster is in another region than cluster.yaml says.

    AWS there would know none of its machines, and the engine would make everything anew, file systems too.
    """
    identity = state.find(IDENTITY_TYPE)
    zone = "" if identity is None else str(identity.outputs.get("zone") or "")
    if zone and not zone.startswith(region):
        raise UsageError(
            f"this cluster is in {zone}, and {source} says region: {region}: nothing was changed; write the old "
            "region back; a cluster in another region needs a folder of its own",
            hint=edit(source),
        )


def refuse_other_home(state: StackState, home: Path) -> None:
    """Raises UsageError when the cluster is rehearsed in another home that still exists: only that has its region."""
    inventory = state.find(INVENTORY_TYPE)
    named = "" if inventory is None else str(inventory.outputs.get("home") or "")
    if named and Path(named).resolve() != home.resolve() and (Path(named) / "rehearsal").is_dir():
        raise UsageError(
            f"this cluster is rehearsed in the home {named}, and this is the home {home}: only that home knows its "
            "region and its machines; nothing was changed",
            hint=f"export {HOME_VARIABLE}={shlex.quote(named)}",
        )


def refuse_other_network(state: StackState, config: ClusterConfig, *, source: str, shown: str) -> None:
    """Raises ConfigError when the network would be made anew under living machines and file systems."""
    problems = list(_network_problems(state, config))
    if problems:
        raise ConfigError(
            f"{source}: {count(len(problems), 'change')} would replace the network, nothing was changed",
            problems=[f"  {problem}" for problem in problems],
            hint=f"clusterctl down {shown} --all",
        )


def refuse_other_launch(state: StackState, cluster_plan: ClusterPlan, *, source: str, shown: str) -> None:
    """Raises ConfigError when living machines would have to enter or leave a placement group, or spot capacity.

    A machine enters one at launch or while it is stopped, and a group with machines in it is not deleted (EC2 User
    Guide, "Placement groups"; 2026-11-21). A reservation stays in its group, whatever the provider is told: it neither
    changes nor replaces it for that (terraform-provider-aws 6, ec2_capacity_reservation.go).

    In a cluster that turns to spot, running machines on demand would cost more than the maximum at which all are
    counted; in one that turns away from it, the places reserved beside running spot machines would bill empty:
    docs/adr/0027-spot-machines.md.
    """
    problems = _launch_problems(state, cluster_plan) if state.instances else ()
    if problems:
        is_one = len(problems) == 1
        refused = f"{count(len(problems), 'change')} {'is' if is_one else 'are'} not made on running nodes"
        raise ConfigError(
            f"{source}: {refused}, nothing was changed",
            problems=[f"  {problem}" for problem in problems],
            hint=f"clusterctl down {shown}",
        )


def _launch_problems(state: StackState, cluster_plan: ClusterPlan) -> tuple[str, ...]:
    is_grouped = any(CAPACITY in group.urn for group in state.of_type(PLACEMENT_GROUP_TYPE))
    is_spot = any(instance.is_spot for instance in state.instances)
    decided = _decided(state)
    capacity = "spot" if is_spot else decided.get("capacity", "on-demand")
    placement = "cluster" if is_grouped else "none"
    if capacity == "reservation":  # it may be in a group of its own
        placement = decided.get("placement", placement)
    return launch_changes(
        launch_facts(placement=placement, capacity=capacity),
        launch_facts(placement=cluster_plan.placement, capacity=cluster_plan.capacity),
    )


def _decided(state: StackState) -> dict[str, str]:
    """How the identity says that this run's machines are launched."""
    identity = state.find(IDENTITY_TYPE)
    found = None if identity is None else identity.outputs.get("launch")
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _adoption_problems(state: StackState, config: ClusterConfig) -> Iterator[str]:
    """The problems if the cluster would move into an existing network, out of one, or from one into another."""
    identity, named = state.find(IDENTITY_TYPE), config.network.adopt
    if identity is None:
        return
    kept = str(identity.outputs.get("slot_range") or "").partition(" ")[0]
    has_own = any(NETWORK in vpc.urn for vpc in state.of_type("aws:ec2/vpc:Vpc"))
    if kept and (named is None or named.node_subnet_id != kept):
        yield (
            f"network.adopt: the nodes' addresses have been in {kept} since the cluster's birth: write it back, or end "
            "the cluster, data and all, first"
        )
    if has_own and named is not None:
        yield (
            f"network.adopt: {named.vpc_id}: the cluster has had a network of its own since its birth: leave adopt "
            "out, or end the cluster, data and all, first"
        )


def _network_problems(state: StackState, config: ClusterConfig) -> Iterator[str]:
    yield from _adoption_problems(state, config)
    network = config.network
    wanted = {
        ("vpc:Vpc", "-vpc"): ("vpc_cidr", str(network.vpc_cidr)),
        ("subnet:Subnet", "-services"): ("service_subnet_cidr", str(network.service_subnet_cidr)),
    }
    for (type, end), (field, cidr) in wanted.items():
        for resource in state.of_type(f"aws:ec2/{type}"):
            if (
                NETWORK in resource.urn
                and resource.urn.endswith(end)
                and resource.inputs.get("cidrBlock") not in (None, cidr)
            ):
                was = resource.inputs["cidrBlock"]
                yield (
                    f"network.{field}: {was} → {cidr}: fixed when the cluster is made, because nothing in it can "
                    "move: write it back, or end the cluster, data and all, first"
                )
