"""Which private addresses of a subnet are free, reserved or taken."""

from __future__ import annotations

import ipaddress

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.network import CIDR_RESERVATION, INSTANCE, MOUNT_TARGET, NETWORK_INTERFACE

_FIRST_RESERVED = 4
"""AWS keeps the first four addresses of a subnet and the last one (VPC user guide, "Subnet CIDR blocks")."""


def router_address(subnet: Record) -> str:
    """The address of AWS's router in a subnet: the second one."""
    return str(ipaddress.IPv4Network(subnet.inputs["cidrBlock"])[1])


def check_address(store: Store, subnet: Record, text: str) -> str:
    """The address, if AWS gives it to an instance. Raises AWS's refusals."""
    network = ipaddress.IPv4Network(subnet.inputs["cidrBlock"])
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError as e:
        raise AwsError(
            "InvalidParameterValue", f"Value ({text}) for parameter address is invalid. Invalid IPv4 address."
        ) from e
    if address not in network:
        raise AwsError("InvalidParameterValue", f"Address {text} does not fall within the subnet's address range")
    if address in _kept_by_aws(network):
        raise AwsError("InvalidParameterValue", f"Address {text} is in subnet's reserved address range")
    if text in _taken(store, subnet):
        raise AwsError("InvalidIPAddress.InUse", f"Address {text} is in use.")
    return text


def free_address(store: Store, subnet: Record, *, besides: set[str | None]) -> str:
    """An address that nobody has and no reservation keeps. Raises InsufficientFreeAddressesInSubnet."""
    network = ipaddress.IPv4Network(subnet.inputs["cidrBlock"])
    kept = _kept_by_aws(network)
    reserved = [
        ipaddress.IPv4Network(row.inputs["cidrBlock"])
        for row in store.live(CIDR_RESERVATION)
        if row.inputs["subnetId"] == subnet.id
    ]
    taken = _taken(store, subnet) | besides
    for address in network:
        if address not in kept and str(address) not in taken and not any(address in block for block in reserved):
            return str(address)
    raise AwsError(
        "InsufficientFreeAddressesInSubnet",
        f"There are insufficient free addresses in the subnet '{subnet.id}' to satisfy the request.",
    )


def free_count(store: Store, subnet: Record) -> int:
    """How many addresses of the subnet are free, as AvailableIpAddressCount."""
    network = ipaddress.IPv4Network(subnet.inputs["cidrBlock"])
    return network.num_addresses - len(_kept_by_aws(network)) - len(_taken(store, subnet))


def _kept_by_aws(network: ipaddress.IPv4Network) -> set[ipaddress.IPv4Address]:
    return {network[index] for index in (*range(_FIRST_RESERVED), -1)}


def _taken(store: Store, subnet: Record) -> set[str | None]:
    taken: set[str | None] = {
        card["ip"]
        for row in store.live(INSTANCE)
        for card in row.facts["interfaces"]
        if card["subnet"] == subnet.id and card["ip"]
    }
    taken |= {row.outputs["ipAddress"] for row in store.live(MOUNT_TARGET) if row.inputs["subnetId"] == subnet.id}
    return taken | {
        row.facts["ip"] for row in store.live(NETWORK_INTERFACE) if subnet.id in row.refs and row.facts.get("ip")
    }
