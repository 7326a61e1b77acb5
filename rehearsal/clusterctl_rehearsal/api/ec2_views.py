"""Network resources as the EC2 API shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api.call import Call, tag_list
from clusterctl_rehearsal.region.instances import launched_at
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.subnets import free_count
from clusterctl_rehearsal.region.types.addresses import association_of
from clusterctl_rehearsal.region.types.network import INSTANCE, ROUTE, ROUTE_TABLE_ASSOCIATION, VPC
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE

View = dict[str, Any]
ViewOf = Callable[[Call, Record], View]


def vpc(call: Call, row: Record) -> View:
    return {
        "VpcId": row.id,
        "CidrBlock": row.inputs["cidrBlock"],
        "State": "available",
        "IsDefault": False,
        "DhcpOptionsId": row.outputs["dhcpOptionsId"],
        "InstanceTenancy": "default",
    }


def subnet(call: Call, row: Record) -> View:
    return {
        "SubnetId": row.id,
        "VpcId": row.inputs["vpcId"],
        "CidrBlock": row.inputs["cidrBlock"],
        "State": "available",
        "AvailabilityZone": row.outputs["availabilityZone"],
        "AvailabilityZoneId": row.outputs["availabilityZoneId"],
        "AvailableIpAddressCount": free_count(call.region.store, row),
        "MapPublicIpOnLaunch": row.outputs["mapPublicIpOnLaunch"],
        "SubnetArn": row.outputs["arn"],
        "DefaultForAz": False,
    }


def security_group(call: Call, row: Record) -> View:
    return {
        "GroupId": row.id,
        "GroupName": row.inputs["name"],
        "Description": row.inputs["description"],
        "VpcId": row.inputs["vpcId"],
        "IpPermissions": _permissions(call, row.id, INGRESS_RULE),
        "IpPermissionsEgress": _permissions(call, row.id, EGRESS_RULE),
    }


def _permissions(call: Call, group: str, token: str) -> list[View]:
    """The group's rules as IpPermissions: one for all rules with the same protocol and ports."""
    found: dict[tuple[Any, ...], View] = {}
    for rule in call.region.store.live(token):
        inputs = rule.inputs
        if inputs["securityGroupId"] != group:
            continue
        key = (str(inputs["ipProtocol"]), inputs.get("fromPort"), inputs.get("toPort"))
        ports = {} if key[0] == "-1" else {"FromPort": key[1], "ToPort": key[2]}
        view = found.setdefault(key, {"IpProtocol": key[0], **ports, "IpRanges": [], "UserIdGroupPairs": []})
        description = {"Description": inputs.get("description")}
        if inputs.get("cidrIpv4"):
            view["IpRanges"].append({"CidrIp": inputs["cidrIpv4"], **description})
        if inputs.get("referencedSecurityGroupId"):
            pair = {"GroupId": inputs["referencedSecurityGroupId"], "UserId": ACCOUNT_ID}
            view["UserIdGroupPairs"].append({**pair, **description})
    return list(found.values())


def security_group_rule(call: Call, row: Record) -> View:
    inputs = row.inputs
    view: View = {
        "SecurityGroupRuleId": row.id,
        "GroupId": inputs["securityGroupId"],
        "IsEgress": row.token == EGRESS_RULE,
        "IpProtocol": inputs["ipProtocol"],
        "FromPort": inputs.get("fromPort", -1),
        "ToPort": inputs.get("toPort", -1),
        "CidrIpv4": inputs.get("cidrIpv4"),
        "Description": inputs.get("description"),
    }
    if inputs.get("referencedSecurityGroupId"):
        view["ReferencedGroupInfo"] = {"GroupId": inputs["referencedSecurityGroupId"], "UserId": ACCOUNT_ID}
    return view


def route_table(call: Call, row: Record) -> View:
    store = call.region.store
    routes = [*(row.inputs.get("routes") or []), *(r.inputs for r in store.live(ROUTE) if row.id in r.refs)]
    vpc_cidr = next(resource.inputs["cidrBlock"] for resource in store.live() if resource.id == row.inputs["vpcId"])
    return {
        "RouteTableId": row.id,
        "VpcId": row.inputs["vpcId"],
        "Associations": [
            {
                "Main": False,
                "RouteTableAssociationId": association.id,
                "RouteTableId": row.id,
                "SubnetId": association.inputs.get("subnetId"),
                "AssociationState": {"State": "associated"},
            }
            for association in store.live(ROUTE_TABLE_ASSOCIATION)
            if association.inputs["routeTableId"] == row.id
        ],
        "Routes": [
            {"DestinationCidrBlock": vpc_cidr, "GatewayId": "local", "State": "active", "Origin": "CreateRouteTable"},
            *(_route(route) for route in routes),
        ],
    }


def _route(row: dict[str, Any]) -> View:
    return {
        "DestinationCidrBlock": row.get("cidrBlock") or row.get("destinationCidrBlock"),
        "GatewayId": row.get("gatewayId"),
        "NatGatewayId": row.get("natGatewayId"),
        "Origin": "CreateRoute",
        "State": "active",
    }


def internet_gateway(call: Call, row: Record) -> View:
    vpc_id = row.inputs.get("vpcId")
    attachments = [{"State": "available", "VpcId": vpc_id}] if vpc_id else []
    return {"InternetGatewayId": row.id, "Attachments": attachments}


def nat_gateway(call: Call, row: Record) -> View:
    found = call.region.store.find(row.inputs["subnetId"])
    return {
        "NatGatewayId": row.id,
        "SubnetId": row.inputs["subnetId"],
        "VpcId": None if found is None else found.inputs["vpcId"],
        "State": "available",
        "CreateTime": launched_at(row),
        "NatGatewayAddresses": [
            {
                "AllocationId": row.inputs.get("allocationId"),
                "NetworkInterfaceId": row.outputs["networkInterfaceId"],
                "PublicIp": row.outputs["publicIp"],
            }
        ],
    }


def vpc_endpoint(call: Call, row: Record) -> View:
    return {
        "VpcEndpointId": row.id,
        "VpcId": row.inputs["vpcId"],
        "ServiceName": row.inputs["serviceName"],
        "VpcEndpointType": row.inputs["vpcEndpointType"],
        "State": "available",
        "CreationTimestamp": launched_at(row),
        "RouteTableIds": row.inputs.get("routeTableIds") or [],
        "SubnetIds": row.inputs.get("subnetIds") or [],
    }


def address(call: Call, row: Record) -> View:
    view: View = {
        "AllocationId": row.id,
        "PublicIp": row.outputs["publicIp"],
        "Domain": "vpc",
        "AssociationId": None,
        "InstanceId": None,
        "NetworkInterfaceId": None,
        "PrivateIpAddress": None,
    }
    holder = association_of(call.region.store, row.id)
    if holder is None:
        return view
    view["AssociationId"] = holder[1]
    instance = call.region.store.get(INSTANCE, holder[0])
    if instance is not None:
        card = instance.facts["interfaces"][0]
        view |= {"InstanceId": instance.id, "NetworkInterfaceId": card["id"], "PrivateIpAddress": card["ip"]}
    return view


def key_pair(call: Call, row: Record) -> View:
    return {
        "KeyName": row.id,
        "KeyPairId": row.outputs["keyPairId"],
        "KeyType": row.outputs["keyType"],
        "KeyFingerprint": row.outputs["fingerprint"],
        "CreateTime": launched_at(row),
    }


def cidr_reservation(call: Call, row: Record) -> View:
    return {
        "SubnetCidrReservationId": row.id,
        "SubnetId": row.inputs["subnetId"],
        "Cidr": row.inputs["cidrBlock"],
        "ReservationType": row.inputs["reservationType"],
        "OwnerId": ACCOUNT_ID,
        "Description": row.inputs.get("description"),
    }


def default_groups(call: Call) -> Iterator[View]:
    """The group that AWS makes with each VPC, and that ends with it; its machines may talk to each other."""
    for vpc in call.records(VPC):
        id = vpc.outputs["defaultSecurityGroupId"]
        everything = {"IpProtocol": "-1", "IpRanges": [], "UserIdGroupPairs": []}
        yield {
            "GroupId": id,
            "GroupName": "default",
            "Description": "default VPC security group",
            "VpcId": vpc.id,
            "OwnerId": ACCOUNT_ID,
            "IpPermissions": [{**everything, "UserIdGroupPairs": [{"GroupId": id, "UserId": ACCOUNT_ID}]}],
            "IpPermissionsEgress": [{**everything, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
            "Tags": [],
        }


def main_route_tables(call: Call) -> Iterator[View]:
    """The route table that AWS makes with each VPC, for the subnets that have no other."""
    for vpc in call.records(VPC):
        id = vpc.outputs["mainRouteTableId"]
        local = {"DestinationCidrBlock": vpc.inputs["cidrBlock"], "GatewayId": "local"}
        association = {
            "Main": True,
            "RouteTableAssociationId": f"rtbassoc-{id.removeprefix('rtb-')}",
            "RouteTableId": id,
        }
        yield {
            "RouteTableId": id,
            "VpcId": vpc.id,
            "OwnerId": ACCOUNT_ID,
            "Associations": [{**association, "AssociationState": {"State": "associated"}}],
            "Routes": [{**local, "State": "active", "Origin": "CreateRouteTable"}],
            "Tags": [],
        }


def rules(call: Call) -> list[Record]:
    """The rules of all security groups, of both directions."""
    return [*call.records(INGRESS_RULE), *call.records(EGRESS_RULE)]


def tagged(call: Call, row: Record, view: View) -> View:
    """The view, with the owner and the tags that every EC2 resource has."""
    return {"OwnerId": ACCOUNT_ID, "Tags": tag_list(row.tags), **view}
