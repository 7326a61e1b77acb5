"""Resource type → the calls of EC2 that the Terraform AWS provider makes for it, and how AWS refuses what is unknown.

From the provider's source: those of tests/unit/skeleton/provider_rights.yaml, and what vpc_.go, ec2_instance.go and
vpc_network_interface.go do besides (read on 2026-11-26). Calls that only features make which clusterctl does not use
(IPv6, IPAM, outposts, prefixes, Windows passwords) are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # parameters as boto3 takes them

from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.addresses import EIP_ASSOCIATION
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE, KEY_PAIR
from clusterctl_rehearsal.region.types.volume import VOLUME

HEX = "0123456789abcdef0"
NO_REQUEST = "InvalidSpotInstanceRequestID.NotFound"
ANSWERED = ""
"""AWS answers with an empty list, or says that it is done, where nothing is there."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One call; `unknown` names what is not there, and `code` is what AWS says to that."""

    service: str
    operation: str
    unknown: tuple[tuple[str, Any], ...]
    code: str


def ec2(operation: str, code: str, **unknown: Any) -> Asked:
    return Asked(service="ec2", operation=operation, unknown=tuple(unknown.items()), code=code)


def other(service: str, operation: str, code: str, **unknown: Any) -> Asked:
    return Asked(service=service, operation=operation, unknown=tuple(unknown.items()), code=code)


def by(name: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": ["none"]}]


TAG = [{"Key": "purpose", "Value": "test"}]
TAGGING = (
    ec2("CreateTags", "InvalidID", Resources=[f"vpc-{HEX}"], Tags=TAG),
    ec2("DeleteTags", "InvalidID", Resources=[f"vpc-{HEX}"], Tags=TAG),
)
VPC, SUBNET, GROUP, TABLE = ({"VpcId": f"vpc-{HEX}"}, {"SubnetId": f"subnet-{HEX}"}, f"sg-{HEX}", f"rtb-{HEX}")
VIA = {"RouteTableId": TABLE, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": f"igw-{HEX}"}
INSTANCE = {"InstanceId": f"i-{HEX}"}
RESERVED = {"CapacityReservationId": f"cr-{HEX}"}
TEMPLATE = {"LaunchTemplateId": f"lt-{HEX}"}
RULE = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "203.0.113.0/24"}]}]


def rule_calls(direction: str) -> tuple[Asked, ...]:
    return (
        ec2(f"AuthorizeSecurityGroup{direction}", "InvalidGroup.NotFound", GroupId=GROUP, IpPermissions=RULE),
        ec2(
            "DescribeSecurityGroupRules",
            "InvalidSecurityGroupRuleId.NotFound",
            SecurityGroupRuleIds=[f"sgr-{HEX}"],
        ),
        ec2(
            "ModifySecurityGroupRules",
            "InvalidGroup.NotFound",
            GroupId=GROUP,
            SecurityGroupRules=[{"SecurityGroupRuleId": f"sgr-{HEX}", "SecurityGroupRule": {"IpProtocol": "-1"}}],
        ),
        ec2(
            f"RevokeSecurityGroup{direction}",
            "InvalidSecurityGroupRuleId.NotFound",
            GroupId=GROUP,
            SecurityGroupRuleIds=[f"sgr-{HEX}"],
        ),
    )


EC2_CALLS: dict[str, tuple[Asked, ...]] = {
    network.VPC: (
        ec2("CreateVpc", "InvalidParameterValue", CidrBlock="none"),
        ec2("DescribeVpcs", "InvalidVpcID.NotFound", VpcIds=[f"vpc-{HEX}"]),
        ec2("DescribeVpcAttribute", "InvalidVpcID.NotFound", **VPC, Attribute="enableDnsSupport"),
        ec2("DescribeNetworkAcls", ANSWERED, Filters=[*by("vpc-id"), *by("default")]),
        ec2("DescribeRouteTables", ANSWERED, Filters=[*by("vpc-id"), *by("association.main")]),
        ec2("DescribeSecurityGroups", ANSWERED, Filters=[*by("vpc-id"), *by("group-name")]),
        ec2("ModifyVpcAttribute", "InvalidVpcID.NotFound", **VPC, EnableDnsSupport={"Value": True}),
        *TAGGING,
        ec2("DeleteVpc", "InvalidVpcID.NotFound", **VPC),
    ),
    network.SUBNET: (
        ec2("CreateSubnet", "InvalidVpcID.NotFound", **VPC, CidrBlock="10.0.0.0/24"),
        ec2("DescribeSubnets", "InvalidSubnetID.NotFound", SubnetIds=[f"subnet-{HEX}"]),
        ec2("ModifySubnetAttribute", "InvalidSubnetID.NotFound", **SUBNET, MapPublicIpOnLaunch={"Value": True}),
        ec2("DescribeAvailabilityZones", "InvalidParameterValue", ZoneNames=["us-west-2z"]),
        ec2("DescribeNetworkInterfaces", ANSWERED, Filters=[*by("subnet-id"), *by("description")]),
        ec2("DeleteSubnet", "InvalidSubnetID.NotFound", **SUBNET),
    ),
    network.CIDR_RESERVATION: (
        ec2(
            "CreateSubnetCidrReservation",
            "InvalidSubnetID.NotFound",
            **SUBNET,
            Cidr="10.0.0.0/28",
            ReservationType="explicit",
        ),
        ec2("GetSubnetCidrReservations", ANSWERED, **SUBNET),
        ec2(
            "DeleteSubnetCidrReservation",
            "InvalidSubnetCidrReservationID.NotFound",
            SubnetCidrReservationId=f"scr-{HEX}",
        ),
    ),
    network.INTERNET_GATEWAY: (
        ec2("CreateInternetGateway", ANSWERED),
        ec2("DescribeInternetGateways", "InvalidInternetGatewayID.NotFound", InternetGatewayIds=[f"igw-{HEX}"]),
        ec2("AttachInternetGateway", "InvalidInternetGatewayID.NotFound", InternetGatewayId=f"igw-{HEX}", **VPC),
        ec2("DetachInternetGateway", "Gateway.NotAttached", InternetGatewayId=f"igw-{HEX}", **VPC),
        ec2("DeleteInternetGateway", "InvalidInternetGatewayID.NotFound", InternetGatewayId=f"igw-{HEX}"),
    ),
    network.ROUTE_TABLE: (
        ec2("CreateRouteTable", "InvalidVpcID.NotFound", **VPC),
        ec2("DescribeRouteTables", "InvalidRouteTableID.NotFound", RouteTableIds=[TABLE]),
        ec2("DeleteRouteTable", "InvalidRouteTableID.NotFound", RouteTableId=TABLE),
    ),
    network.ROUTE: (
        ec2("CreateRoute", "InvalidRouteTableID.NotFound", **VIA),
        ec2("ReplaceRoute", "InvalidRouteTableID.NotFound", **VIA),
        ec2("DeleteRoute", "InvalidRoute.NotFound", RouteTableId=TABLE, DestinationCidrBlock="0.0.0.0/0"),
    ),
    network.ROUTE_TABLE_ASSOCIATION: (
        ec2("AssociateRouteTable", "InvalidRouteTableID.NotFound", RouteTableId=TABLE, **SUBNET),
        ec2("DescribeRouteTables", ANSWERED, Filters=by("association.route-table-association-id")),
        ec2(
            "ReplaceRouteTableAssociation",
            "InvalidAssociationID.NotFound",
            AssociationId=f"rtbassoc-{HEX}",
            RouteTableId=TABLE,
        ),
        ec2("DisassociateRouteTable", "InvalidAssociationID.NotFound", AssociationId=f"rtbassoc-{HEX}"),
    ),
    network.NAT_GATEWAY: (
        ec2("CreateNatGateway", "InvalidSubnetID.NotFound", **SUBNET, AllocationId=f"eipalloc-{HEX}"),
        ec2("DescribeNatGateways", "NatGatewayNotFound", NatGatewayIds=[f"nat-{HEX}"]),
        ec2("DeleteNatGateway", "NatGatewayNotFound", NatGatewayId=f"nat-{HEX}"),
    ),
    network.VPC_ENDPOINT: (
        ec2("CreateVpcEndpoint", "InvalidVpcID.NotFound", **VPC, ServiceName="com.amazonaws.us-west-2.s3"),
        ec2("DescribeVpcEndpoints", "InvalidVpcEndpointId.NotFound", VpcEndpointIds=[f"vpce-{HEX}"]),
        ec2("DescribePrefixLists", ANSWERED, Filters=by("prefix-list-name")),
        ec2("ModifyVpcEndpoint", "InvalidVpcEndpointId.NotFound", VpcEndpointId=f"vpce-{HEX}"),
        ec2("DeleteVpcEndpoints", "InvalidVpcEndpointId.NotFound", VpcEndpointIds=[f"vpce-{HEX}"]),
    ),
    network.SECURITY_GROUP: (
        ec2("CreateSecurityGroup", "InvalidVpcID.NotFound", GroupName="x", Description="x", **VPC),
        ec2("DescribeSecurityGroups", "InvalidGroup.NotFound", GroupIds=[GROUP]),
        ec2("RevokeSecurityGroupEgress", "InvalidPermission.NotFound", GroupId=GROUP, IpPermissions=RULE),
        ec2("DescribeNetworkInterfaces", ANSWERED, Filters=by("group-id")),
        ec2("DeleteSecurityGroup", "InvalidGroup.NotFound", GroupId=GROUP),
    ),
    INGRESS_RULE: rule_calls("Ingress"),
    EGRESS_RULE: rule_calls("Egress"),
    KEY_PAIR: (
        ec2("ImportKeyPair", "InvalidKey.Format", KeyName="x", PublicKeyMaterial=b"none"),
        ec2("DescribeKeyPairs", "InvalidKeyPair.NotFound", KeyNames=["none"]),
        ec2("DeleteKeyPair", ANSWERED, KeyName="none"),
    ),
    network.EIP: (
        ec2("AllocateAddress", ANSWERED, Domain="vpc"),
        ec2("DescribeAddresses", "InvalidAllocationID.NotFound", AllocationIds=[f"eipalloc-{HEX}"]),
        ec2("DescribeAddressesAttribute", ANSWERED, AllocationIds=[f"eipalloc-{HEX}"], Attribute="domain-name"),
        ec2("ReleaseAddress", "InvalidAllocationID.NotFound", AllocationId=f"eipalloc-{HEX}"),
    ),
    EIP_ASSOCIATION: (
        ec2("AssociateAddress", "InvalidAllocationID.NotFound", AllocationId=f"eipalloc-{HEX}", **INSTANCE),
        ec2("DescribeAddresses", ANSWERED, Filters=by("association-id")),
        ec2("DisassociateAddress", "InvalidAssociationID.NotFound", AssociationId=f"eipassoc-{HEX}"),
    ),
    PLACEMENT_GROUP: (
        ec2("CreatePlacementGroup", ANSWERED, GroupName="x", Strategy="cluster"),
        ec2("DescribePlacementGroups", "InvalidPlacementGroup.Unknown", GroupNames=["none"]),
        ec2("DeletePlacementGroup", "InvalidPlacementGroup.Unknown", GroupName="none"),
    ),
    CAPACITY_RESERVATION: (
        ec2(
            "CreateCapacityReservation",
            "InvalidInstanceType",
            InstanceType="none.large",
            InstancePlatform="Linux/UNIX",
            AvailabilityZone="us-west-2a",
            InstanceCount=1,
        ),
        ec2(
            "DescribeCapacityReservations",
            "InvalidCapacityReservationId.NotFound",
            CapacityReservationIds=[f"cr-{HEX}"],
        ),
        ec2("ModifyCapacityReservation", "InvalidCapacityReservationId.NotFound", **RESERVED, InstanceCount=2),
        ec2("CancelCapacityReservation", "InvalidCapacityReservationId.NotFound", **RESERVED),
    ),
    LAUNCH_TEMPLATE: (
        ec2(
            "CreateLaunchTemplate",
            "InvalidLaunchTemplateName.MalformedException",
            LaunchTemplateName="a name",
            LaunchTemplateData={},
        ),
        ec2("DescribeLaunchTemplates", "InvalidLaunchTemplateId.NotFound", LaunchTemplateIds=[f"lt-{HEX}"]),
        ec2("DescribeLaunchTemplateVersions", "InvalidLaunchTemplateId.NotFound", **TEMPLATE, Versions=["1"]),
        ec2("CreateLaunchTemplateVersion", "InvalidLaunchTemplateId.NotFound", **TEMPLATE, LaunchTemplateData={}),
        ec2("ModifyLaunchTemplate", "InvalidLaunchTemplateId.NotFound", **TEMPLATE, DefaultVersion="1"),
        ec2("DeleteLaunchTemplate", "InvalidLaunchTemplateId.NotFound", **TEMPLATE),
    ),
    network.INSTANCE: (
        ec2("RunInstances", "InvalidLaunchTemplateId.NotFound", MinCount=1, MaxCount=1, LaunchTemplate=TEMPLATE),
        ec2("DescribeInstances", "InvalidInstanceID.NotFound", InstanceIds=[f"i-{HEX}"]),
        ec2("DescribeInstanceTypes", "InvalidInstanceType", InstanceTypes=["none.large"]),
        ec2("DescribeInstanceAttribute", "InvalidInstanceID.NotFound", **INSTANCE, Attribute="disableApiStop"),
        ec2("DescribeInstanceCreditSpecifications", "InvalidInstanceID.NotFound", InstanceIds=[f"i-{HEX}"]),
        ec2("DescribeIamInstanceProfileAssociations", ANSWERED, Filters=by("instance-id")),
        ec2("DescribeImages", ANSWERED, ImageIds=[]),
        ec2("DescribeVolumes", "InvalidVolume.NotFound", VolumeIds=[f"vol-{HEX}"]),
        ec2("DescribeTags", ANSWERED, Filters=by("resource-id")),
        ec2("ModifyInstanceAttribute", "InvalidInstanceID.NotFound", **INSTANCE, DisableApiStop={"Value": False}),
        ec2("ModifyInstanceMetadataOptions", "InvalidInstanceID.NotFound", **INSTANCE, HttpTokens="required"),
        ec2("DescribeSpotInstanceRequests", NO_REQUEST, SpotInstanceRequestIds=["sir-none"]),
        ec2("CancelSpotInstanceRequests", NO_REQUEST, SpotInstanceRequestIds=["sir-none"]),
        ec2("TerminateInstances", "InvalidInstanceID.NotFound", InstanceIds=[f"i-{HEX}"]),
    ),
    network.NETWORK_INTERFACE: (
        ec2("CreateNetworkInterface", "InvalidSubnetID.NotFound", **SUBNET),
        ec2("DescribeNetworkInterfaces", "InvalidNetworkInterfaceID.NotFound", NetworkInterfaceIds=[f"eni-{HEX}"]),
        ec2(
            "ModifyNetworkInterfaceAttribute",
            "InvalidNetworkInterfaceID.NotFound",
            NetworkInterfaceId=f"eni-{HEX}",
            SourceDestCheck={"Value": False},
        ),
        ec2(
            "AttachNetworkInterface",
            "InvalidNetworkInterfaceID.NotFound",
            NetworkInterfaceId=f"eni-{HEX}",
            **INSTANCE,
            DeviceIndex=1,
        ),
        ec2("DetachNetworkInterface", "InvalidAttachmentID.NotFound", AttachmentId=f"eni-attach-{HEX}"),
        ec2("DeleteNetworkInterface", "InvalidNetworkInterfaceID.NotFound", NetworkInterfaceId=f"eni-{HEX}"),
    ),
    VOLUME: (
        ec2("CreateVolume", "InvalidZone.NotFound", AvailabilityZone="us-west-2z", Size=1),
        ec2("AttachVolume", "InvalidVolume.NotFound", VolumeId=f"vol-{HEX}", **INSTANCE, Device="/dev/sdf"),
        ec2("DetachVolume", "InvalidVolume.NotFound", VolumeId=f"vol-{HEX}"),
        ec2("DeleteVolume", "InvalidVolume.NotFound", VolumeId=f"vol-{HEX}"),
    ),
}
