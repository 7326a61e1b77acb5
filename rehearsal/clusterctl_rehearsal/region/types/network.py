"""VPCs, subnets and their CIDR reservations, gateways, routes, endpoints; tokens of other types that these name."""

from __future__ import annotations

import ipaddress

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties
from clusterctl_rehearsal.region.types.row import Request, ResourceType, parse_cidr, random_hex

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
CIDR_RESERVATION = "aws:ec2/subnetCidrReservation:SubnetCidrReservation"
INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ROUTE_TABLE_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
NAT_GATEWAY = "aws:ec2/natGateway:NatGateway"
VPC_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
INSTANCE = "aws:ec2/instance:Instance"
NETWORK_INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
EIP = "aws:ec2/eip:Eip"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
LUSTRE_LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
EFS = "aws:efs/fileSystem:FileSystem"
MOUNT_TARGET = "aws:efs/mountTarget:MountTarget"


def _check_vpc(request: Request) -> None:
    parse_cidr(request.inputs.get("cidrBlock") or "")
    limit = request.settings.quotas.get("vpcs")
    others = [row for row in request.store.live(VPC) if row.region == request.region and row.id != request.id]
    if limit is not None and len(others) >= limit:
        raise AwsError("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


def vpc_defaults() -> Properties:
    """The ids of what AWS makes with each VPC."""
    return {
        "defaultSecurityGroupId": f"sg-{random_hex(17)}",
        "defaultNetworkAclId": f"acl-{random_hex(17)}",
        "defaultRouteTableId": (table := f"rtb-{random_hex(17)}"),
        "mainRouteTableId": table,
    }


def _vpc(request: Request) -> Properties:
    return {
        "arn": request.arn("vpc"),
        "ownerId": ACCOUNT_ID,
        "instanceTenancy": "default",
        "enableDnsSupport": True,
        "enableDnsHostnames": False,
        **vpc_defaults(),
        "dhcpOptionsId": f"dopt-{random_hex(17)}",
    }


def _check_subnet(request: Request) -> None:
    text = str(request.inputs.get("cidrBlock"))
    network = parse_cidr(text)
    vpc = request.store.get(VPC, request.inputs["vpcId"])
    assert vpc is not None  # refused before, as `needs` names it
    if not network.subnet_of(ipaddress.IPv4Network(vpc.inputs["cidrBlock"])):
        raise AwsError("InvalidSubnet.Range", f"The CIDR '{text}' is invalid.")
    others = (row for row in request.store.live(SUBNET) if row.inputs["vpcId"] == vpc.id and row.id != request.id)
    for other in others:
        if network.overlaps(ipaddress.IPv4Network(other.inputs["cidrBlock"])):
            raise AwsError("InvalidSubnet.Conflict", f"The CIDR '{text}' conflicts with another subnet")
    zone = request.inputs.get("availabilityZone")
    if zone is not None and zone not in request.zone_names():
        raise AwsError(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid. "
            f"Subnets can currently only be created in the following availability zones: "
            f"{', '.join(request.zone_names())}.",
        )


def _subnet(request: Request) -> Properties:
    zone = request.inputs.get("availabilityZone") or request.zone_names()[0]
    return {
        "arn": request.arn("subnet"),
        "ownerId": ACCOUNT_ID,
        "availabilityZone": zone,
        "availabilityZoneId": f"{zone[:3].replace('-', '')}{zone[3]}{zone[-2]}-az{ord(zone[-1]) - 96}",
        "mapPublicIpOnLaunch": False,
        "privateDnsHostnameTypeOnLaunch": "ip-name",
    }


def _check_cidr_reservation(request: Request) -> None:
    text = request.inputs["cidrBlock"]
    subnet = request.store.get(SUBNET, request.inputs["subnetId"])
    assert subnet is not None  # refused before, as `needs` names it
    network = parse_cidr(text, smallest=32)
    if not network.subnet_of(ipaddress.IPv4Network(subnet.inputs["cidrBlock"])):
        raise AwsError("InvalidCidrReservation.Range", f"The CIDR '{text}' is not within the subnet's CIDR.")
    for other in request.store.live(CIDR_RESERVATION):
        taken = ipaddress.IPv4Network(other.inputs["cidrBlock"])
        if other.inputs["subnetId"] == subnet.id and network.overlaps(taken):
            raise AwsError("InvalidCidrReservation.Conflict", f"The CIDR '{text}' conflicts with {taken}.")


def _association_target(request: Request) -> None:
    target = request.inputs.get("subnetId")
    table = request.store.get(ROUTE_TABLE, request.inputs["routeTableId"])
    subnet = None if target is None else request.store.get(SUBNET, target)
    if table is not None and subnet is not None and table.inputs["vpcId"] != subnet.inputs["vpcId"]:
        raise AwsError(
            "InvalidParameterValue", f"Route table {table.id} and network {subnet.id} belong to different networks"
        )
    for other in request.store.live(ROUTE_TABLE_ASSOCIATION):
        if target is not None and other.inputs.get("subnetId") == target and other.id != request.id:
            raise AwsError(
                "Resource.AlreadyAssociated",
                f"the specified association for route table {other.inputs['routeTableId']} conflicts with an "
                f"existing association",
            )


NETWORK_TYPES = (
    ResourceType(
        token=VPC,
        label="EC2 VPC",
        prefix="vpc",
        create="CreateVpc",
        delete="DeleteVpc",
        not_found="InvalidVpcID.NotFound",
        source="internal/service/ec2/vpc_.go",
        replace=("cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"),
        blocked_by=(SUBNET, INTERNET_GATEWAY, ROUTE_TABLE, SECURITY_GROUP, VPC_ENDPOINT),
        check=_check_vpc,
        outputs=_vpc,
    ),
    ResourceType(
        token=SUBNET,
        label="EC2 Subnet",
        prefix="subnet",
        create="CreateSubnet",
        delete="DeleteSubnet",
        not_found="InvalidSubnetID.NotFound",
        source="internal/service/ec2/vpc_subnet.go",
        replace=("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "outpostArn", "ipv6Native"),
        needs={"vpcId": VPC},
        blocked_by=(INSTANCE, NETWORK_INTERFACE, NAT_GATEWAY, VPC_ENDPOINT, LUSTRE, MOUNT_TARGET),
        check=_check_subnet,
        outputs=_subnet,
    ),
    ResourceType(
        token=CIDR_RESERVATION,
        label="EC2 Subnet CIDR Reservation",
        prefix="scr",
        create="CreateSubnetCidrReservation",
        delete="DeleteSubnetCidrReservation",
        not_found="InvalidSubnetCidrReservationID.NotFound",
        source="internal/service/ec2/vpc_subnet_cidr_reservation.go",
        replace=("cidrBlock", "description", "reservationType", "subnetId"),
        part_of="subnetId",
        needs={"subnetId": SUBNET},
        taggable=False,
        check=_check_cidr_reservation,
        outputs=lambda request: {"ownerId": ACCOUNT_ID},
    ),
    ResourceType(
        token=INTERNET_GATEWAY,
        label="EC2 Internet Gateway",
        prefix="igw",
        create="CreateInternetGateway",
        delete="DeleteInternetGateway",
        not_found="InvalidInternetGatewayID.NotFound",
        source="internal/service/ec2/vpc_internet_gateway.go",
        needs={"vpcId": VPC},
        outputs=lambda request: {"arn": request.arn("internet-gateway"), "ownerId": ACCOUNT_ID},
    ),
    ResourceType(
        token=ROUTE_TABLE,
        label="EC2 Route Table",
        prefix="rtb",
        create="CreateRouteTable",
        delete="DeleteRouteTable",
        not_found="InvalidRouteTableID.NotFound",
        source="internal/service/ec2/vpc_route_table.go",
        replace=("vpcId",),
        needs={"vpcId": VPC},
        blocked_by=(ROUTE_TABLE_ASSOCIATION,),
        outputs=lambda request: {"arn": request.arn("route-table"), "ownerId": ACCOUNT_ID},
    ),
    ResourceType(
        token=ROUTE,
        label="EC2 Route",
        prefix="r",
        create="CreateRoute",
        delete="DeleteRoute",
        not_found="InvalidRoute.NotFound",
        source="internal/service/ec2/vpc_route.go",
        replace=("routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId"),
        part_of="routeTableId",
        needs={"routeTableId": ROUTE_TABLE, "gatewayId": INTERNET_GATEWAY, "natGatewayId": NAT_GATEWAY},
        unique=(
            ("routeTableId", "destinationCidrBlock"),
            "RouteAlreadyExists",
            "The route identified by {destinationCidrBlock} already exists.",
        ),
        taggable=False,
        outputs=lambda request: {"origin": "CreateRoute", "state": "active"},
    ),
    ResourceType(
        token=ROUTE_TABLE_ASSOCIATION,
        label="EC2 Route Table Association",
        prefix="rtbassoc",
        create="AssociateRouteTable",
        delete="DisassociateRouteTable",
        not_found="InvalidAssociationID.NotFound",
        source="internal/service/ec2/vpc_route_table_association.go",
        replace=("gatewayId", "subnetId"),
        part_of="subnetId",
        needs={"routeTableId": ROUTE_TABLE, "subnetId": SUBNET},
        taggable=False,
        check=_association_target,
    ),
    ResourceType(
        token=NAT_GATEWAY,
        label="EC2 NAT Gateway",
        prefix="nat",
        create="CreateNatGateway",
        delete="DeleteNatGateway",
        not_found="NatGatewayNotFound",
        source="internal/service/ec2/vpc_nat_gateway.go",
        replace=("allocationId", "connectivityType", "privateIp", "secondaryPrivateIpAddressCount", "subnetId"),
        needs={"subnetId": SUBNET, "allocationId": EIP},
        outputs=lambda request: {
            "connectivityType": "public",
            "networkInterfaceId": f"eni-{random_hex(17)}",
            "associationId": f"eipassoc-{random_hex(17)}",
            "publicIp": _address_of(request),
        },
    ),
    ResourceType(
        token=VPC_ENDPOINT,
        label="EC2 VPC Endpoint",
        prefix="vpce",
        create="CreateVpcEndpoint",
        delete="DeleteVpcEndpoints",
        not_found="InvalidVpcEndpointId.NotFound",
        source="internal/service/ec2/vpc_endpoint.go",
        replace=("serviceName", "vpcEndpointType", "vpcId"),
        needs={"vpcId": VPC, "subnetIds": SUBNET, "routeTableIds": ROUTE_TABLE, "securityGroupIds": SECURITY_GROUP},
        defaults={"vpcEndpointType": "Gateway"},
        outputs=lambda request: {"arn": request.arn("vpc-endpoint"), "ownerId": ACCOUNT_ID, "state": "available"},
    ),
)


def _address_of(request: Request) -> str | None:
    address = request.store.get(EIP, request.inputs.get("allocationId") or "")
    return None if address is None else address.outputs["publicIp"]
