"""A network that exists: what AWS says of it, which of its addresses are free, and whether anything leads out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any  # EC2's answers: typed dictionaries with every key optional

from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.answers import network_in, text_in
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

EVERYWHERE = "0.0.0.0/0"
LARGEST_SUBNET = 16
"""A subnet has between /28 and /16 (Amazon VPC User Guide, "Subnet sizing", 2026-11-26)."""
AVAILABLE = "available"


@dataclass(frozen=True, kw_only=True)
class FoundNetwork:
    """A subnet, and those facts about its VPC that matter to nodes in it."""

    vpc_id: str
    subnet_id: str
    subnet_cidr: str
    zone: str
    free: int
    """How many addresses of the subnet are free."""
    taken: tuple[str, ...]
    """Addresses and ranges that others have, or that are reserved."""
    way_out: str | None
    """The id of what its route to everywhere leads to, such as igw-… or nat-…; None: there is no such route."""
    has_dns: bool


def find_network(clients: Clients, *, vpc_id: str, subnet_id: str, own_id: str | None) -> FoundNetwork:
    """The network with these ids. Raises CloudError, also where the subnet is in another VPC.

    `own_id`: the cluster's id: its own interfaces do not count as taken; None: it has no id yet.
    """
    with aws_errors(f"looking at the subnet {subnet_id}"):
        subnet = subnet_row(clients.ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"], subnet_id)
        if subnet["VpcId"] != vpc_id:
            raise CloudError(
                f"{subnet_id} is in {subnet['VpcId']}, and cluster.yaml says vpc_id: {vpc_id}", code="OtherVpc"
            )
        dns = clients.ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute="enableDnsSupport")
        in_subnet: Any = [{"Name": "subnet-id", "Values": [subnet_id]}]
        pages = clients.ec2.get_paginator("describe_network_interfaces").paginate(Filters=in_subnet)
        interfaces = [row for page in pages for row in page["NetworkInterfaces"]]
        held = clients.ec2.get_subnet_cidr_reservations(SubnetId=subnet_id).get("SubnetIpv4CidrReservations", [])
        in_vpc: Any = [{"Name": "vpc-id", "Values": [vpc_id]}]
        tables = [
            row
            for page in clients.ec2.get_paginator("describe_route_tables").paginate(Filters=in_vpc)
            for row in page["RouteTables"]
        ]
    return FoundNetwork(
        vpc_id=vpc_id,
        subnet_id=subnet_id,
        subnet_cidr=str(network_in(subnet, "CidrBlock", largest=LARGEST_SUBNET)),
        zone=text_in(subnet, "AvailabilityZone", subnet_id),
        free=subnet["AvailableIpAddressCount"],
        taken=(*addresses(interfaces, own_id=own_id), *(str(network_in(row, "Cidr")) for row in held)),
        way_out=way_out(tables, subnet_id),
        has_dns=dns.get("EnableDnsSupport", {}).get("Value", False),
    )


def subnet_row(rows: Sequence[Mapping[str, Any]], subnet_id: str) -> Mapping[str, Any]:
    """The row of the subnet that was asked for. Raises CloudError if there is none, or if it cannot be used now."""
    subnet = next((row for row in rows if row.get("SubnetId") == subnet_id), None)
    if subnet is None:
        raise CloudError(f"AWS has no subnet {subnet_id} any more", code="InvalidSubnetID.NotFound")
    if subnet.get("State", AVAILABLE) != AVAILABLE:
        raise CloudError(f"{subnet_id} is {subnet['State']}, not {AVAILABLE}", code="SubnetUnusable")
    return subnet


def way_out(tables: Sequence[Mapping[str, Any]], subnet_id: str) -> str | None:
    """The id of what the subnet's route to everywhere leads to: by its own route table, else by the VPC's main one."""
    rows = [(table, association) for table in tables for association in table.get("Associations", [])]
    own = [table for table, association in rows if association.get("SubnetId") == subnet_id]
    main = [table for table, association in rows if association.get("Main")]
    for table in (own or main)[:1]:
        for route in table.get("Routes", []):
            if route.get("DestinationCidrBlock") == EVERYWHERE and route.get("State", "active") == "active":
                return next((str(value) for key, value in route.items() if key.endswith("Id") and value), None)
    return None


def network_problem(found: FoundNetwork, *, is_public: bool, machines: int, sources: Sequence[str] = ()) -> str | None:
    """Why `machines` more nodes cannot live in the network; None: they can. `is_public`: each has a public address.

    `sources`: where nodes fetch what their mounts need.
    """
    mounts = f" (their mounts need {', '.join(sources)})" if sources else ""
    if not found.has_dns:
        return (
            f"{found.vpc_id} has enableDnsSupport off: nodes could not resolve names; switch it on, or choose another"
        )
    if found.way_out is None:
        return (
            f"{found.subnet_id} has no route to {EVERYWHERE}, so nodes could reach no service and fetch nothing{mounts}"
            ": choose a subnet with a NAT or an internet gateway"
        )
    leads_by_gateway = found.way_out.startswith("igw-")
    if is_public and not leads_by_gateway:
        return (
            f"{found.subnet_id} leads out by {found.way_out}, so public addresses do not work in it: write access: "
            "{mode: private}, or choose a subnet with an internet gateway"
        )
    if not is_public and leads_by_gateway:
        return (
            f"{found.subnet_id} leads out by {found.way_out}, and machines without a public address cannot use that: "
            "choose a subnet with a NAT gateway, or access: {mode: public}"
        )
    if found.free < machines:
        size = IPv4Network(found.subnet_cidr).num_addresses
        return f"{found.subnet_id} has {found.free} of its {size} addresses free, and {machines} are needed"
    return None


def addresses(interfaces: Sequence[Mapping[str, Any]], *, own_id: str | None) -> list[str]:
    """The addresses of all interfaces but this cluster's own, with secondary addresses and prefixes.

    An EFA-only interface has none. Raises CloudError for a value that is not an address.
    """
    found: list[str] = []
    for row in interfaces:
        if own_id is not None and {"Key": ID_TAG, "Value": own_id} in row.get("TagSet", []):
            continue
        single = [each for each in (row, *row.get("PrivateIpAddresses", [])) if each.get("PrivateIpAddress")]
        prefixes = [each for each in row.get("Ipv4Prefixes", []) if each.get("Ipv4Prefix")]
        found += [str(network_in(each, "PrivateIpAddress").network_address) for each in single]
        found += [str(network_in(each, "Ipv4Prefix")) for each in prefixes]
    return sorted(set(found))
