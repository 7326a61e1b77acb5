"""Looks up the network and the reservation that exist and that cluster.yaml names, before an `up`.

What AWS says of them is judged, and kept in the stack's config. The plan is made from that, so plain `pulumi up` makes
the same one. Neither the network nor the reservation is changed.
"""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta

from clusterctl_infra.adopted import Adopted, AdoptedCapacity, AdoptedNetwork, adopted_to_json
from clusterctl_infra.config.network import AdoptConfig
from clusterctl_infra.errors import CloudError, NotBegun
from clusterctl_infra.names import IDENTITY_TYPE
from clusterctl_infra.plan.mount_clients import client_sources
from clusterctl_infra.plan.network import free_range, others_in_slots
from clusterctl_infra.plan.storage import storage_plans

from clusterctl.cloud.adopted_capacity import SHOW, capacity_problem, find_capacity, not_begun
from clusterctl.cloud.adopted_network import FoundNetwork, find_network, network_problem
from clusterctl.cloud.boundary import Clients
from clusterctl.engine.region import tell_region
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.drift import living_slots
from clusterctl.lifecycle.intent import Intent, with_changes
from clusterctl.text.next_commands import edit


def adopt(
    change: Change, intent: Intent, state: StackState, *, now: datetime, offered: AdoptedCapacity | None = None
) -> Intent:
    """The intent with what AWS says of the named network and reservation; without earlier answers if none is named.

    `offered`: a capacity block that is not bought yet; the plan is made as if it were.

    Raises CloudError where the cluster cannot use it, before anything is made.
    """
    config = intent.config
    if config.reservation_id is None and config.network.adopt is None:
        return with_changes(intent, {"adopted": None})
    if change.is_rehearsal:
        tell_region(change.home, change.environ, change.stack.directory, cluster=change.name)
    adopted = look_up(change.clients, intent, state, source=change.stack.source, now=now, offered=offered)
    text = json.dumps(adopted_to_json(adopted), separators=(",", ":"))
    return with_changes(intent, {"adopted": text})


def look_up(
    clients: Clients,
    intent: Intent,
    state: StackState,
    *,
    source: str,
    now: datetime,
    offered: AdoptedCapacity | None = None,
) -> Adopted:
    """The named network and reservation, as AWS describes them now. Raises CloudError where the cluster cannot use
    it.
    """
    config = intent.config
    staying = len([slot for slot in living_slots(clients, state) if slot < config.nodes])
    machines = config.nodes - staying
    capacity, network = offered, None
    if offered is None and config.reservation_id is not None:
        as_block = config.capacity_block is not None
        capacity = _capacity(clients, config.reservation_id, as_block=as_block, machines=machines, now=now)
    if config.network.adopt is not None:
        network = _network(clients, intent, config.network.adopt, state, machines=machines, source=source)
    return Adopted(capacity=capacity, network=network)


def _capacity(clients: Clients, id: str, *, as_block: bool, machines: int, now: datetime) -> AdoptedCapacity:
    found = find_capacity(clients, id)
    show = SHOW.format(region=clients.region, id=id)
    later = not_begun(found) if found.is_block == as_block else None
    if later is not None:
        raise NotBegun(
            f"{later}. No node was made; run clusterctl up then, or let it wait: {waiting(found.starts_at, now=now)}",
            code="ReservationNotBegun",
            begins_at=found.starts_at,
            hint=show,
        )
    problem = capacity_problem(found, as_block=as_block, machines=machines, now=now)
    if problem is not None:
        raise CloudError(f"{problem}. Nothing was changed", code="ReservationUnusable", hint=show)
    return found.adopted()


def waiting(begins_at: datetime | None, *, now: datetime) -> str:
    """The flags with which `up` waits until `begins_at`: `--retry-until-up --for 34h`."""
    hours = 0 if begins_at is None else math.ceil((begins_at - now) / timedelta(hours=1)) + 1
    return "--retry-until-up" if hours <= 0 else f"--retry-until-up --for {hours}h"


def kept_range(state: StackState) -> tuple[str, str] | None:
    """The (subnet id, CIDR range) of the slots' addresses since the cluster's birth; None: it has its own network."""
    identity = state.find(IDENTITY_TYPE)
    kept = None if identity is None else identity.outputs.get("slot_range")
    subnet_id, _, cidr = str(kept or "").partition(" ")
    return (subnet_id, cidr) if cidr else None


def _network(
    clients: Clients, intent: Intent, named: AdoptConfig, state: StackState, *, machines: int, source: str
) -> AdoptedNetwork:
    found = find_network(clients, vpc_id=named.vpc_id, subnet_id=named.node_subnet_id, own_id=state.cluster_id)
    config, catalog = intent.config, intent.catalog
    sources = client_sources(config, catalog, storage_plans(config, catalog))
    problem = network_problem(found, is_public=config.access.mode == "public", machines=machines, sources=sources)
    if problem is not None:
        raise CloudError(f"{problem}. Nothing was changed", code="NetworkUnusable", hint=edit(source))
    kept = kept_range(state)
    if kept is not None and kept[0] == found.subnet_id:
        slot_cidr = kept[1]
        refuse_taken(found, slot_cidr, nodes=intent.config.nodes)
    else:
        slot_cidr = _range(found, intent, source=source)
    return AdoptedNetwork(
        vpc_id=found.vpc_id,
        subnet_id=found.subnet_id,
        subnet_cidr=found.subnet_cidr,
        zone=found.zone,
        slot_cidr=slot_cidr,
    )


def refuse_taken(found: FoundNetwork, slot_cidr: str, *, nodes: int) -> None:
    """Raises CloudError where somebody else has taken the address of a slot since the range was chosen."""
    others = others_in_slots(slot_cidr, found.taken, nodes=nodes)
    if others:
        raise CloudError(
            f"{', '.join(others)} in {found.subnet_id}: these addresses belong to slots of this cluster, but "
            "somebody else has taken them. Nothing was changed; free them, or make fewer nodes",
            code="AddressTaken",
            hint=f"aws ec2 describe-network-interfaces --filters Name=subnet-id,Values={found.subnet_id}",
        )


def _range(found: FoundNetwork, intent: Intent, *, source: str) -> str:
    nodes = intent.config.nodes
    chosen = free_range(found.subnet_cidr, found.taken, nodes=nodes)
    if chosen is None:
        raise CloudError(
            f"{found.subnet_id} ({found.subnet_cidr}) has {found.free} addresses free, but no range of {nodes} "
            "consecutive ones, which the nodes need; choose another subnet. Nothing was changed",
            code="InsufficientFreeAddressesInSubnet",
            hint=edit(source),
        )
    return chosen
