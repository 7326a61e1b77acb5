"""The resource types of the network: gateways, endpoints, security groups and their rules, route tables, subnets, the
VPC.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.resource import CloudResource, Meter, ResourceType, by_id, is_of


def nat_gateways(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    """The cluster's NAT gateways, also those that are being made or deleted."""
    pages = clients.ec2.get_paginator("describe_nat_gateways").paginate(
        Filters=[by_id(cluster_id), {"Name": "state", "Values": ["pending", "available", "deleting"]}]
    )
    for page in pages:
        for row in page["NatGateways"]:
            yield CloudResource(
                kind="NAT gateway",
                id=row["NatGatewayId"],
                created_at=row.get("CreateTime"),
                tags=tags_of(row.get("Tags")),
                meter=Meter(unit="NAT gateway"),
            )


def _delete_nat_gateway(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_nat_gateway(NatGatewayId=found.id)


def _endpoints(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_vpc_endpoints").paginate(Filters=[by_id(cluster_id)]):
        for row in page["VpcEndpoints"]:
            if str(row.get("State", "")).lower() != "deleted":
                yield CloudResource(
                    kind="VPC endpoint",
                    id=row["VpcEndpointId"],
                    created_at=row.get("CreationTimestamp"),
                    tags=tags_of(row.get("Tags")),
                    # Billed for each zone; a gateway endpoint costs nothing (Amazon VPC pricing; 2026-11-21).
                    meter=Meter(unit="endpoint", amount=len(row.get("SubnetIds", []))),
                )


def _delete_endpoint(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_vpc_endpoints(VpcEndpointIds=[found.id])


def _rules(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    """The cluster's security group rules.

    The call documents a filter by a tag's value, but none by its key (EC2 API in botocore 1.44; 2026-11-21).
    """
    filters = [] if cluster_id is None else [by_id(cluster_id)]
    for page in clients.ec2.get_paginator("describe_security_group_rules").paginate(Filters=filters):
        for row in page["SecurityGroupRules"]:
            tags = tags_of(row.get("Tags"))
            if not is_of(tags, cluster_id):
                continue
            direction = "egress" if row.get("IsEgress") else "ingress"
            yield CloudResource(
                kind=f"{direction} rule", id=row["SecurityGroupRuleId"], parent=row["GroupId"], tags=tags
            )


def _revoke_rule(clients: Clients, found: CloudResource) -> None:
    group, rules = found.parent or "", [found.id]
    if found.kind == "egress rule":
        clients.ec2.revoke_security_group_egress(GroupId=group, SecurityGroupRuleIds=rules)
    else:
        clients.ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=rules)


def _groups(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_security_groups").paginate(Filters=[by_id(cluster_id)]):
        for row in page["SecurityGroups"]:
            yield CloudResource(kind="security group", id=row["GroupId"], tags=tags_of(row.get("Tags")))


def _delete_group(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_security_group(GroupId=found.id)


def _cidr_reservations(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for subnet in _subnets(clients, cluster_id):
        answer = clients.ec2.get_subnet_cidr_reservations(SubnetId=subnet.id)
        for row in answer.get("SubnetIpv4CidrReservations", []):
            yield CloudResource(
                kind="subnet CIDR reservation", id=row["SubnetCidrReservationId"], parent=subnet.id, tags=subnet.tags
            )


def _delete_cidr_reservation(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_subnet_cidr_reservation(SubnetCidrReservationId=found.id)


def _subnets(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_subnets").paginate(Filters=[by_id(cluster_id)]):
        for row in page["Subnets"]:
            yield CloudResource(kind="subnet", id=row["SubnetId"], tags=tags_of(row.get("Tags")))


def _delete_subnet(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_subnet(SubnetId=found.id)


def _associations(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_route_tables").paginate(Filters=[by_id(cluster_id)]):
        for table in page["RouteTables"]:
            for row in table.get("Associations", []):
                if not row.get("Main") and "RouteTableAssociationId" in row:
                    yield CloudResource(
                        kind="route table association",
                        id=row["RouteTableAssociationId"],
                        tags=tags_of(table.get("Tags")),
                    )


def _disassociate(clients: Clients, found: CloudResource) -> None:
    clients.ec2.disassociate_route_table(AssociationId=found.id)


def _routes(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_route_tables").paginate(Filters=[by_id(cluster_id)]):
        for table in page["RouteTables"]:
            for row in table.get("Routes", []):
                destination = row.get("DestinationCidrBlock")
                if row.get("Origin") == "CreateRoute" and destination is not None:
                    name = f"{table['RouteTableId']}/{destination}"
                    tags = tags_of(table.get("Tags"))
                    yield CloudResource(kind="route", id=name, parent=table["RouteTableId"], tags=tags)


def _delete_route(clients: Clients, found: CloudResource) -> None:
    table, _, destination = found.id.partition("/")
    clients.ec2.delete_route(RouteTableId=table, DestinationCidrBlock=destination)


def _tables(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_route_tables").paginate(Filters=[by_id(cluster_id)]):
        for row in page["RouteTables"]:
            yield CloudResource(kind="route table", id=row["RouteTableId"], tags=tags_of(row.get("Tags")))


def _delete_table(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_route_table(RouteTableId=found.id)


def _internet_gateways(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_internet_gateways").paginate(Filters=[by_id(cluster_id)]):
        for row in page["InternetGateways"]:
            vpcs = [attachment.get("VpcId") for attachment in row.get("Attachments", [])]
            yield CloudResource(
                kind="internet gateway",
                id=row["InternetGatewayId"],
                parent=vpcs[0] if vpcs else None,
                tags=tags_of(row.get("Tags")),
            )


def _delete_internet_gateway(clients: Clients, found: CloudResource) -> None:
    if found.parent is not None:
        clients.ec2.detach_internet_gateway(InternetGatewayId=found.id, VpcId=found.parent)
    clients.ec2.delete_internet_gateway(InternetGatewayId=found.id)


def _vpcs(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.ec2.get_paginator("describe_vpcs").paginate(Filters=[by_id(cluster_id)]):
        for row in page["Vpcs"]:
            yield CloudResource(kind="VPC", id=row["VpcId"], tags=tags_of(row.get("Tags")))


def _delete_vpc(clients: Clients, found: CloudResource) -> None:
    clients.ec2.delete_vpc(VpcId=found.id)


NETWORK_KINDS = (
    ResourceType(
        name="NAT gateway",
        types=("aws:ec2/natGateway:NatGateway",),
        find=nat_gateways,
        delete=_delete_nat_gateway,
        bills="by the hour, and for each GB that it carries",
    ),
    ResourceType(
        name="VPC endpoint",
        types=("aws:ec2/vpcEndpoint:VpcEndpoint",),
        find=_endpoints,
        delete=_delete_endpoint,
        bills="by the hour, where it has interfaces",
    ),
    ResourceType(
        name="security group rule",
        types=(
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        ),
        also_called=("ingress rule", "egress rule"),
        find=_rules,
        delete=_revoke_rule,
        bills=None,
        leads_to_data=True,
    ),
    ResourceType(
        name="security group",
        types=("aws:ec2/securityGroup:SecurityGroup",),
        find=_groups,
        delete=_delete_group,
        bills=None,
        leads_to_data=True,
    ),
    ResourceType(
        name="subnet CIDR reservation",
        types=("aws:ec2/subnetCidrReservation:SubnetCidrReservation",),
        find=_cidr_reservations,
        delete=_delete_cidr_reservation,
        bills=None,
    ),
    ResourceType(
        name="route table association",
        types=("aws:ec2/routeTableAssociation:RouteTableAssociation",),
        find=_associations,
        delete=_disassociate,
        bills=None,
    ),
    ResourceType(name="route", types=("aws:ec2/route:Route",), find=_routes, delete=_delete_route, bills=None),
    ResourceType(
        name="subnet",
        types=("aws:ec2/subnet:Subnet",),
        find=_subnets,
        delete=_delete_subnet,
        bills=None,
        leads_to_data=True,
    ),
    ResourceType(
        name="route table", types=("aws:ec2/routeTable:RouteTable",), find=_tables, delete=_delete_table, bills=None
    ),
    ResourceType(
        name="internet gateway",
        types=("aws:ec2/internetGateway:InternetGateway",),
        find=_internet_gateways,
        delete=_delete_internet_gateway,
        bills=None,
    ),
    ResourceType(
        name="VPC",
        types=("aws:ec2/vpc:Vpc",),
        find=_vpcs,
        delete=_delete_vpc,
        bills=None,
        leads_to_data=True,
    ),
)
"""In the order in which they are ended."""
