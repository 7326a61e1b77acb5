"""EC2's calls that make networks, for clients of the API; the engine's plugin does not use them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_views as views
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.making import living, made, refuse_dry_run
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.types import addresses, network, security

Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Making:
    """One call that makes a resource: its type, the input that each parameter becomes, and the view in the answer."""

    token: str
    inputs: Mapping[str, str]
    view: views.ViewOf
    key: str = ""
    """The key of the view in the answer; empty if the answer is the view itself."""
    defaults: Mapping[str, Any] = field(default_factory=dict)


_MADE = {
    "CreateVpc": Making(token=network.VPC, inputs={"CidrBlock": "cidrBlock"}, view=views.vpc, key="Vpc"),
    "CreateSubnet": Making(
        token=network.SUBNET,
        inputs={"VpcId": "vpcId", "CidrBlock": "cidrBlock", "AvailabilityZone": "availabilityZone"},
        view=views.subnet,
        key="Subnet",
    ),
    "CreateSubnetCidrReservation": Making(
        token=network.CIDR_RESERVATION,
        inputs={
            "SubnetId": "subnetId",
            "Cidr": "cidrBlock",
            "ReservationType": "reservationType",
            "Description": "description",
        },
        view=views.cidr_reservation,
        key="SubnetCidrReservation",
    ),
    "CreateInternetGateway": Making(
        token=network.INTERNET_GATEWAY, inputs={}, view=views.internet_gateway, key="InternetGateway"
    ),
    "CreateRouteTable": Making(
        token=network.ROUTE_TABLE, inputs={"VpcId": "vpcId"}, view=views.route_table, key="RouteTable"
    ),
    "CreateNatGateway": Making(
        token=network.NAT_GATEWAY,
        inputs={"SubnetId": "subnetId", "AllocationId": "allocationId"},
        view=views.nat_gateway,
        key="NatGateway",
    ),
    "CreateVpcEndpoint": Making(
        token=network.VPC_ENDPOINT,
        inputs={
            "VpcId": "vpcId",
            "ServiceName": "serviceName",
            "VpcEndpointType": "vpcEndpointType",
            "RouteTableIds": "routeTableIds",
            "SubnetIds": "subnetIds",
            "SecurityGroupIds": "securityGroupIds",
        },
        view=views.vpc_endpoint,
        key="VpcEndpoint",
    ),
    "AllocateAddress": Making(token=network.EIP, inputs={}, view=views.address, defaults={"domain": "vpc"}),
}


def _making(row: Making) -> Handler:
    def handler(call: Call) -> Answer:
        inputs = {name: call.parameters[key] for key, name in row.inputs.items() if key in call.parameters}
        record = made(call, row.token, {**row.defaults, **inputs})
        view = views.tagged(call, record, row.view(call, record))
        return {row.key: view} if row.key else view

    return handler


def _create_security_group(call: Call) -> Answer:
    """Makes a group with the egress rule that allows everything, as AWS does for each group of a VPC."""
    asked = call.parameters
    inputs = {"name": asked.get("GroupName"), "description": asked.get("Description"), "vpcId": asked.get("VpcId")}
    record = made(call, network.SECURITY_GROUP, inputs)
    everything = {"securityGroupId": record.id, "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}
    made(call, security.EGRESS_RULE, everything, has_tags=False)
    view = views.tagged(call, record, {})
    return {"GroupId": record.id, "SecurityGroupArn": record.outputs["arn"], "Tags": view["Tags"]}


def _authorize(token: str) -> Handler:
    def handler(call: Call) -> Answer:
        refuse_dry_run(call)
        group = call.parameters["GroupId"]
        rules = [
            made(call, token, {"securityGroupId": group, **row})
            for permission in call.parameters.get("IpPermissions") or []
            for row in rules_of(permission)
        ]
        if not rules:
            raise AwsError("MissingParameter", "The request must contain the parameter ipPermissions")
        shown = [views.tagged(call, rule, views.security_group_rule(call, rule)) for rule in rules]
        return {"Return": True, "SecurityGroupRules": shown}

    return handler


def rules_of(permission: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rules in one permission: one for each source."""
    protocol = str(permission["IpProtocol"])
    ports = {"fromPort": permission.get("FromPort"), "toPort": permission.get("ToPort")} if protocol != "-1" else {}
    for source in permission.get("IpRanges") or []:
        yield {"ipProtocol": protocol, **ports, "cidrIpv4": source["CidrIp"], **_described(source)}
    for source in permission.get("UserIdGroupPairs") or []:
        yield {"ipProtocol": protocol, **ports, "referencedSecurityGroupId": source["GroupId"], **_described(source)}


def _described(source: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": source["Description"]} if "Description" in source else {}


def _attach_internet_gateway(call: Call) -> Answer:
    refuse_dry_run(call)
    row = living(call, network.INTERNET_GATEWAY, call.parameters["InternetGatewayId"])
    if row.inputs.get("vpcId"):
        raise AwsError("Resource.AlreadyAssociated", f"resource {row.id} is already attached to network")
    call.region.update(row.token, row.id, {**row.inputs, "vpcId": call.parameters["VpcId"]})
    return {}


def _create_route(call: Call) -> Answer:
    asked = call.parameters
    inputs = {
        "routeTableId": asked["RouteTableId"],
        "destinationCidrBlock": asked.get("DestinationCidrBlock"),
        "gatewayId": asked.get("GatewayId"),
        "natGatewayId": asked.get("NatGatewayId"),
    }
    made(call, network.ROUTE, inputs, has_tags=False)
    return {"Return": True}


def _associate_route_table(call: Call) -> Answer:
    inputs = {"routeTableId": call.parameters["RouteTableId"], "subnetId": call.parameters.get("SubnetId")}
    record = made(call, network.ROUTE_TABLE_ASSOCIATION, inputs, has_tags=False)
    return {"AssociationId": record.id, "AssociationState": {"State": "associated"}}


def _associate_address(call: Call) -> Answer:
    asked = call.parameters
    inputs = {
        "allocationId": asked["AllocationId"],
        "instanceId": asked.get("InstanceId"),
        "networkInterfaceId": asked.get("NetworkInterfaceId"),
        "allowReassociation": asked.get("AllowReassociation"),
    }
    return {"AssociationId": made(call, addresses.EIP_ASSOCIATION, inputs, has_tags=False).id}


def _import_key_pair(call: Call) -> Answer:
    try:
        key = base64.b64decode(call.parameters["PublicKeyMaterial"]).decode("ascii")
    except ValueError as e:
        raise AwsError("InvalidKey.Format", "Key is not in valid OpenSSH public key format") from e
    record = made(call, security.KEY_PAIR, {"keyName": call.parameters["KeyName"], "publicKey": key})
    return views.tagged(call, record, views.key_pair(call, record))


MAKE_NETWORK: dict[str, Handler] = {
    **{operation: _making(row) for operation, row in _MADE.items()},
    "CreateSecurityGroup": _create_security_group,
    "AuthorizeSecurityGroupIngress": _authorize(security.INGRESS_RULE),
    "AuthorizeSecurityGroupEgress": _authorize(security.EGRESS_RULE),
    "AttachInternetGateway": _attach_internet_gateway,
    "CreateRoute": _create_route,
    "AssociateRouteTable": _associate_route_table,
    "AssociateAddress": _associate_address,
    "ImportKeyPair": _import_key_pair,
}
