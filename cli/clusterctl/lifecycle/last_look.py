"""The last look of a `down`: AWS is asked again what is there, and what of it costs money."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.errors import CloudError, StillBills
from clusterctl_infra.names import IDENTITY_TYPE, INVENTORY_TYPE, SLOT_TAG
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import refuse_account
from clusterctl.cloud.delete_orphans import NOT_ENDED, KnownNow
from clusterctl.cloud.deletion_attempts import Agreed
from clusterctl.cloud.look import UNKNOWN_REST, Look, NotListed, look_at_each, named
from clusterctl.cloud.resource import CloudResource, Known, ResourceType, orphans, type_of
from clusterctl.cloud.resource_types import KINDS
from clusterctl.engine.repair import Tell, end_orphans
from clusterctl.engine.state import EIP_TYPE, RESERVATION_TYPE, StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.drift import gone_reservations, gone_spot_machines, lost_beside, lost_parts

ENDPOINT_TYPE = "aws:ec2/vpcEndpoint:VpcEndpoint"
NAT_TYPE = "aws:ec2/natGateway:NatGateway"
NETWORK_COMPONENT = "clusterctl:infra:Network"


def last_look(
    clients: Clients,
    cluster_id: str,
    state: StackState,
    *,
    data_since: datetime | None,
    tell: Tell,
    agreed: Agreed,
    again: str,
    known_now: KnownNow | None = None,
) -> tuple[CloudResource, ...]:
    """Ends the cluster's orphans, and returns what stays and bills: what the state keeps, and data that is in no state.

    `data_since`: orphans that hold data are ended, too, if they were made after it; None: none is. `known_now`: what
    the state holds at this moment, for a cluster that another `up` may go on with meanwhile.

    Raises StillBills with a list of what could not be ended, or asked about, EngineError where another run has begun,
    CloudError when AWS does not answer.
    """
    try:
        end_orphans(clients, state, tell=tell, data_since=data_since, agreed=agreed, known_now=known_now)
    except CloudError as refused:
        if refused.code != NOT_ENDED:
            raise
        seen = look_at_each(clients, cluster_id).raise_if_blind()
        refuse_leftovers(leftovers(seen.things, state.physical_ids), not_listed=seen.not_listed, again=again)
        raise
    seen = look_at_each(clients, cluster_id).raise_if_blind()
    left = leftovers(seen.things, state.physical_ids)
    if left and known_now is not None:
        left = leftovers(left, known_now())
    refuse_leftovers(left, not_listed=seen.not_listed, again=again)
    return billing(seen)


def forgotten(state: StackState) -> StackState:
    """The state with only the cluster's identity and inventory in it: everything that still exists is an orphan."""
    return StackState(
        resources=tuple(resource for resource in state.resources if resource.type in (IDENTITY_TYPE, INVENTORY_TYPE))
    )


def look_for(known: Inventory, clients: Clients) -> Look:
    """What AWS has, in the cluster's own region, of a cluster that this computer knows.

    Raises CloudError, also where the credentials are another account's: nobody there can say that nothing bills.
    """
    there = clients
    if known.region != clients.region:
        there = clients.elsewhere(known.region)
    if known.account_id is not None:
        refuse_account(known.account_id, clients.account())
    return look_at_each(there, known.cluster_id).raise_if_blind()


def billing(seen: Look) -> tuple[CloudResource, ...]:
    """The resources that cost money."""
    return tuple(thing for thing in seen.things if bill_of(thing) is not None)


def leftovers(
    found: Iterable[CloudResource], known: Known, kinds: Sequence[ResourceType] = KINDS
) -> tuple[CloudResource, ...]:
    """What bills though nobody wants to keep it: it is in no state, and holds no data."""
    lost = orphans(found, known, kinds)
    return tuple(thing for thing in lost if bill_of(thing, kinds) is not None and not type_of(thing, kinds).is_data)


def refuse_leftovers(left: Sequence[CloudResource], *, not_listed: NotListed, again: str) -> None:
    """Raises StillBills if anything is left, or if AWS did not list every kind, so that something may be."""
    lines = [f"  {thing.kind} {thing.id}: bills {bill_of(thing)}" for thing in left]
    lines += [f"  AWS did not say whether it has: {kind}" for kind in named(not_listed)]
    if left:
        number = "1 thing that bills is left" if len(left) == 1 else f"{len(left)} things that bill are left"
        raise StillBills(f"not all is gone: {number}", problems=lines, hint=again)
    if not_listed:
        raise StillBills(UNKNOWN_REST, problems=lines, hint=again)


def bill_of(thing: CloudResource, kinds: Sequence[ResourceType] = KINDS) -> str | None:
    """What a thing costs for as long as it exists; None when nothing."""
    return type_of(thing, kinds).bills


def network_bill_lines(state: StackState, catalog: Catalog, *, region: str) -> list[str]:
    """What of the network costs money for as long as it is kept: `NAT gateway nat-0a1…: about $0.045 an hour`."""
    charges = catalog.charges.get(region)
    rates = {
        NAT_TYPE: ("NAT gateway", None if charges is None else charges.nat_gateway_usd_per_hour),
        ENDPOINT_TYPE: ("VPC endpoint", None if charges is None else charges.endpoint_usd_per_hour),
        EIP_TYPE: ("elastic IP", catalog.public_address_usd_per_hour),
    }
    return [
        f"{name} {resource.id}: {_hourly(rate)}"
        for type, (name, rate) in rates.items()
        for resource in state.of_type(type)
        if not _is_gateway_endpoint(resource) and not _goes_with_nodes(resource)
    ]


def _hourly(usd_per_hour: float | None) -> str:
    if usd_per_hour is None:
        return "bills by the hour, at a price not known here"
    return f"about ${usd_per_hour:g} an hour"


def _goes_with_nodes(resource: StateResource) -> bool:
    """Whether it is a slot's address, or part of the private nodes' way out: both are there only while nodes are."""
    is_way_out = resource.type in (NAT_TYPE, EIP_TYPE) and f"{NETWORK_COMPONENT}$" in resource.urn
    return is_way_out or SLOT_TAG in (resource.inputs.get("tags") or {})


def _is_gateway_endpoint(resource: StateResource) -> bool:
    """Whether it is a gateway endpoint, the default type, which costs nothing (Amazon VPC pricing; 2026-11-21)."""
    return resource.type == ENDPOINT_TYPE and resource.inputs.get("vpcEndpointType", "Gateway") == "Gateway"


def forget_gone(change: Change, state: StackState) -> None:
    """Removes from the state what AWS no longer has, such as a reservation past its end date.

    AWS would refuse to cancel that reservation, or the request of a spot machine that ended long ago. If the cluster
    ended early, its reservation, the NAT gateway and the elastic IPs are gone.
    """
    if lost_parts(change.clients, state):
        change.tell("what its state names is gone from AWS, as after reap: AWS is asked about all of it")
        change.engine.refresh(())
        return
    gone = {*expired_reservations(state, now=datetime.now(UTC)), *gone_reservations(change.clients, state)}
    gone |= {*gone_spot_machines(change.clients, state)}
    gone |= {part.urn for part in lost_beside(change.clients, state)}
    if gone:
        change.engine.refresh(sorted(gone))


def expired_reservations(state: StackState, *, now: datetime) -> tuple[str, ...]:
    """URNs of the capacity reservations whose end date has passed."""
    ends = ((reservation.urn, reservation.inputs.get("endDate")) for reservation in state.of_type(RESERVATION_TYPE))
    return tuple(urn for urn, end in ends if isinstance(end, str) and datetime.fromisoformat(end) <= now)


def forget_cluster(home: Home, cluster: str, *, cluster_id: str) -> bool:
    """Removes the inventory and login key of `cluster` if they are of the one with this id; returns whether it did."""
    file = home.inventory_file(cluster)
    try:
        known = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return False
    if not isinstance(known, dict) or known.get("cluster_id") != cluster_id:
        return False
    file.unlink(missing_ok=True)
    shutil.rmtree(home.keys_dir / cluster, ignore_errors=True)
    return True
