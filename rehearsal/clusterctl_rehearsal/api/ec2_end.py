"""EC2's calls that end resources: a table of the ordinary ones, and a function for each that AWS does differently."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_describe import check_all_found
from clusterctl_rehearsal.api.ec2_network_make import rules_of
from clusterctl_rehearsal.api.making import living, refuse_dry_run
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types import addresses, capacity, network, security


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One call that ends resources: their type, and the parameter that names one or several of them."""

    token: str
    parameter: str


_ENDED = {
    "DeleteVpc": Ended(token=network.VPC, parameter="VpcId"),
    "DeleteSubnet": Ended(token=network.SUBNET, parameter="SubnetId"),
    "DeleteSubnetCidrReservation": Ended(token=network.CIDR_RESERVATION, parameter="SubnetCidrReservationId"),
    "DeleteSecurityGroup": Ended(token=network.SECURITY_GROUP, parameter="GroupId"),
    "DeleteRouteTable": Ended(token=network.ROUTE_TABLE, parameter="RouteTableId"),
    "DisassociateRouteTable": Ended(token=network.ROUTE_TABLE_ASSOCIATION, parameter="AssociationId"),
    "DeleteNatGateway": Ended(token=network.NAT_GATEWAY, parameter="NatGatewayId"),
    "DeleteVpcEndpoints": Ended(token=network.VPC_ENDPOINT, parameter="VpcEndpointIds"),
    "ReleaseAddress": Ended(token=network.EIP, parameter="AllocationId"),
    "CancelCapacityReservation": Ended(token=CAPACITY_RESERVATION, parameter="CapacityReservationId"),
    "DeletePlacementGroup": Ended(token=capacity.PLACEMENT_GROUP, parameter="GroupName"),
    "DeleteLaunchTemplate": Ended(token=LAUNCH_TEMPLATE, parameter="LaunchTemplateId"),
}


def _end(row: Ended) -> Handler:
    def handler(call: Call) -> dict[str, Any]:
        named = call.parameters.get(row.parameter)
        if not named:
            raise AwsError("MissingParameter", f"The request must contain the parameter {row.parameter}")
        for id in named if isinstance(named, list) else [named]:
            _refuse_default(call, row.token, id)
            record = living(call, row.token, id)
            refuse_dry_run(call)
            _refuse_block(record)
            call.region.delete(row.token, id)
        return {"Return": True}

    return handler


def _refuse_block(record: Record) -> None:
    """Raises AwsError for a capacity block: it is paid for and cannot be cancelled (EC2 User Guide, "Capacity Blocks").

    The error code is ours.
    """
    if record.facts.get("is_block"):
        raise AwsError("OperationNotPermitted", f"The Capacity Block {record.id} cannot be cancelled.")


def _refuse_default(call: Call, token: str, id: str) -> None:
    """Raises AwsError for a VPC's default group or main route table, which end only with the VPC.

    Source: EC2 API, "Error codes"; 2026-11-26.
    """
    for vpc in call.records(network.VPC):
        if token == network.SECURITY_GROUP and id == vpc.outputs["defaultSecurityGroupId"]:
            raise AwsError("CannotDelete", "the specified group: 'default' name cannot be deleted by a user")
        if token == network.ROUTE_TABLE and id == vpc.outputs["mainRouteTableId"]:
            message = f"The routeTable '{id}' has dependencies and cannot be deleted."
            raise AwsError("DependencyViolation", message)


def _terminate(call: Call) -> dict[str, Any]:
    wanted = call.parameters.get("InstanceIds") or []
    rows = {row.id: row for row in call.records(network.INSTANCE)}
    check_all_found(network.INSTANCE, wanted, set(rows))  # with one bad id, none is terminated
    for row in (rows[id] for id in wanted):
        if row.facts.get("is_protected"):
            message = f"The instance '{row.id}' may not be terminated. Modify its 'disableApiTermination' attribute."
            raise AwsError("OperationNotPermitted", message)
    refuse_dry_run(call)
    answers = []
    for row in (rows[id] for id in wanted):
        now = call.region.instances.shut_down(row)
        answers.append({"InstanceId": row.id, "PreviousState": compute.state(row), "CurrentState": compute.state(now)})
        if now.is_live:
            threading.Thread(target=call.region.instances.finish, args=(now,), daemon=True).start()
    return {"TerminatingInstances": answers}


def _delete_internet_gateway(call: Call) -> dict[str, Any]:
    id = call.parameters["InternetGatewayId"]
    if living(call, network.INTERNET_GATEWAY, id).inputs.get("vpcId"):
        raise AwsError("DependencyViolation", f"The internetGateway '{id}' has dependencies and cannot be deleted.")
    call.region.delete(network.INTERNET_GATEWAY, id)
    return {}


def _detach_internet_gateway(call: Call) -> dict[str, Any]:
    id, vpc_id = call.parameters["InternetGatewayId"], call.parameters.get("VpcId")
    row = call.find(network.INTERNET_GATEWAY, id)
    if row is None or row.inputs.get("vpcId") != vpc_id:
        raise AwsError("Gateway.NotAttached", f"resource {id} is not attached to network {vpc_id}")
    kept = {key: value for key, value in row.inputs.items() if key != "vpcId"}
    call.region.update(network.INTERNET_GATEWAY, id, kept)
    return {}


def _revoke(token: str) -> Handler:
    """Revokes rules named by their ids or by their contents (as the provider names the egress rule that AWS made)."""

    def handler(call: Call) -> dict[str, Any]:
        refuse_dry_run(call)
        ids, group = call.parameters.get("SecurityGroupRuleIds") or [], call.parameters.get("GroupId")
        for id in ids:
            call.region.delete(token, living(call, token, id).id)
        for permission in call.parameters.get("IpPermissions") or []:
            for rule in rules_of(permission):
                call.region.delete(token, _rule_with(call, token, group, rule).id)
        if not ids and not call.parameters.get("IpPermissions"):
            raise AwsError("MissingParameter", "The request must contain the parameter ipPermissions")
        return {"Return": True}

    return handler


def _rule_with(call: Call, token: str, group: str | None, rule: dict[str, Any]) -> Record:
    keys = ("ipProtocol", "fromPort", "toPort", "cidrIpv4", "referencedSecurityGroupId")
    for row in call.records(token):
        is_same = all(str(row.inputs.get(key)) == str(rule.get(key)) for key in keys)
        if row.inputs["securityGroupId"] == group and is_same:
            return row
    raise AwsError("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")


def _delete_route(call: Call) -> dict[str, Any]:
    table, cidr = call.parameters["RouteTableId"], call.parameters.get("DestinationCidrBlock")
    for row in call.records(network.ROUTE):
        if row.inputs["routeTableId"] == table and row.inputs.get("destinationCidrBlock") == cidr:
            call.region.delete(network.ROUTE, row.id)
            return {}
    raise AwsError("InvalidRoute.NotFound", f"no route with destination-cidr-block {cidr} in route table {table}")


def _delete_key_pair(call: Call) -> dict[str, Any]:
    wanted = (call.parameters.get("KeyName"), call.parameters.get("KeyPairId"))
    for row in call.records(security.KEY_PAIR):
        if row.id == wanted[0] or row.outputs["keyPairId"] == wanted[1]:
            call.region.delete(security.KEY_PAIR, row.id)
    return {"Return": True}  # AWS answers this for a key pair that does not exist, too


def _disassociate_address(call: Call) -> dict[str, Any]:
    id = call.parameters.get("AssociationId") or ""
    for row in call.records(network.EIP):
        if id and row.outputs.get("associationId") == id:
            kept = {key: value for key, value in row.inputs.items() if key not in ("instance", "networkInterface")}
            call.region.store.put(dataclasses.replace(row, inputs=kept, outputs={**row.outputs, "associationId": ""}))
            return {}
    call.region.delete(addresses.EIP_ASSOCIATION, living(call, addresses.EIP_ASSOCIATION, id).id)
    return {}


END: dict[str, Handler] = {
    **{operation: _end(row) for operation, row in _ENDED.items()},
    "TerminateInstances": _terminate,
    "RevokeSecurityGroupIngress": _revoke(security.INGRESS_RULE),
    "RevokeSecurityGroupEgress": _revoke(security.EGRESS_RULE),
    "DeleteInternetGateway": _delete_internet_gateway,
    "DetachInternetGateway": _detach_internet_gateway,
    "DeleteRoute": _delete_route,
    "DeleteKeyPair": _delete_key_pair,
    "DisassociateAddress": _disassociate_address,
}
