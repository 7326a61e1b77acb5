"""EC2's calls that change existing resources, as a provider makes them when a program changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_views import tagged
from clusterctl_rehearsal.api.interfaces import change_card
from clusterctl_rehearsal.api.launch_templates import create_version, named_template
from clusterctl_rehearsal.api.making import living, refuse_dry_run
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.types import network, security
from clusterctl_rehearsal.region.types.table import TYPES

Answer = dict[str, Any]


def _changed(call: Call, row: Record, changes: Mapping[str, Any]) -> Record:
    return call.region.update(row.token, row.id, {**row.inputs, **changes})


def _modify_vpc(call: Call) -> Answer:
    """Sets a VPC's two DNS attributes, and the one about metrics of its addresses."""
    asked = call.parameters
    row = living(call, network.VPC, asked["VpcId"])
    names = ("EnableDnsSupport", "EnableDnsHostnames", "EnableNetworkAddressUsageMetrics")
    _changed(call, row, {name[0].lower() + name[1:]: asked[name]["Value"] for name in names if name in asked})
    return {}


def _modify_subnet(call: Call) -> Answer:
    asked = call.parameters
    row = living(call, network.SUBNET, asked["SubnetId"])
    if "MapPublicIpOnLaunch" in asked:
        _changed(call, row, {"mapPublicIpOnLaunch": asked["MapPublicIpOnLaunch"]["Value"]})
    return {}


def _replace_route(call: Call) -> Answer:
    refuse_dry_run(call)
    asked = call.parameters
    table, cidr = living(call, network.ROUTE_TABLE, asked["RouteTableId"]).id, asked.get("DestinationCidrBlock")
    for row in call.records(network.ROUTE):
        if row.inputs["routeTableId"] == table and row.inputs.get("destinationCidrBlock") == cidr:
            ways = {"gatewayId": asked.get("GatewayId"), "natGatewayId": asked.get("NatGatewayId")}
            call.region.update(row.token, row.id, {**row.inputs, **ways})
            return {}
    raise AwsError("InvalidParameterValue", f"There is no route defined for '{cidr}' in the route table.")


def _replace_association(call: Call) -> Answer:
    """Associates a subnet with another route table; the association gets a new id, as on AWS."""
    refuse_dry_run(call)
    old = living(call, network.ROUTE_TABLE_ASSOCIATION, call.parameters["AssociationId"])
    table = living(call, network.ROUTE_TABLE, call.parameters["RouteTableId"])
    changed = _changed(call, old, {"routeTableId": table.id})
    new = dataclasses.replace(changed, id=TYPES[old.token].new_id(changed.inputs, changed.region))
    call.region.store.put(new)
    call.region.store.forget(changed)
    return {"NewAssociationId": new.id, "AssociationState": {"State": "associated"}}


def _modify_endpoint(call: Call) -> Answer:
    refuse_dry_run(call)
    row, asked = living(call, network.VPC_ENDPOINT, call.parameters["VpcEndpointId"]), call.parameters
    changes: Properties = {}
    for name in ("RouteTableIds", "SubnetIds", "SecurityGroupIds"):
        key = name[0].lower() + name[1:]
        gone = set(asked.get(f"Remove{name}") or [])
        kept = [id for id in row.inputs.get(key) or [] if id not in gone]
        changes[key] = [*kept, *(id for id in asked.get(f"Add{name}") or [] if id not in kept)]
    _changed(call, row, changes)
    return {"Return": True}


def _modify_rules(call: Call) -> Answer:
    refuse_dry_run(call)
    living(call, network.SECURITY_GROUP, call.parameters["GroupId"])
    for wanted in call.parameters["SecurityGroupRules"]:
        row, rule = _rule(call, wanted["SecurityGroupRuleId"]), wanted.get("SecurityGroupRule") or {}
        ports = {} if str(rule.get("IpProtocol")) == "-1" else {key: rule.get(word) for key, word in _PORTS.items()}
        call.region.update(
            row.token,
            row.id,
            {
                "securityGroupId": row.inputs["securityGroupId"],
                "ipProtocol": rule.get("IpProtocol"),
                "cidrIpv4": rule.get("CidrIpv4"),
                "referencedSecurityGroupId": rule.get("ReferencedGroupId"),
                "description": rule.get("Description"),
                "tags": row.tags,
                **ports,
            },
        )
    return {"Return": True}


_PORTS = {"fromPort": "FromPort", "toPort": "ToPort"}


def _rule(call: Call, id: str) -> Record:
    for token in (security.INGRESS_RULE, security.EGRESS_RULE):
        row = call.find(token, id)
        if row is not None:
            return row
    raise AwsError("InvalidSecurityGroupRuleId.NotFound", f"The security group rule ID '{id}' does not exist")


def _modify_reservation(call: Call) -> Answer:
    refuse_dry_run(call)
    row, asked = living(call, CAPACITY_RESERVATION, call.parameters["CapacityReservationId"]), call.parameters
    if row.facts.get("is_block"):
        raise AwsError("OperationNotPermitted", f"The Capacity Block {row.id} cannot be modified.")
    changes: Properties = {}
    if "InstanceCount" in asked:
        changes["instanceCount"] = int(asked["InstanceCount"])
    if "EndDateType" in asked:
        changes["endDateType"] = asked["EndDateType"]
    if "EndDate" in asked:
        changes["endDate"] = compute.utc_text(asked["EndDate"])
    elif asked.get("EndDateType") == "unlimited":
        changes["endDate"] = None
    _changed(call, row, changes)
    return {"Return": True}


def _modify_template(call: Call) -> Answer:
    refuse_dry_run(call)
    row, wanted = named_template(call), call.parameters.get("DefaultVersion")
    if wanted is not None and str(wanted) not in row.facts["versions"]:
        message = f"Could not find the specified version {wanted} for the launch template with ID {row.id}."
        raise AwsError("InvalidLaunchTemplateId.VersionNotFound", message)
    changed = row if wanted is None else _changed(call, row, {"defaultVersion": int(wanted)})
    return {"LaunchTemplate": tagged(call, changed, compute.launch_template(call, changed))}


def _modify_instance(call: Call) -> Answer:
    """Changes what AWS changes while an instance runs; refuses a new type or user-data, which need a stopped one."""
    refuse_dry_run(call)
    asked, row = call.parameters, living(call, network.INSTANCE, call.parameters["InstanceId"])
    if asked.get("InstanceType") or asked.get("UserData"):
        raise AwsError("IncorrectInstanceState", f"The instance '{row.id}' is not in the 'stopped' state.")
    flags = {"DisableApiTermination": "is_protected", "DisableApiStop": "is_kept_running"}
    facts = {fact: asked[key]["Value"] for key, fact in flags.items() if key in asked}
    if "InstanceInitiatedShutdownBehavior" in asked:
        facts["shutdown"] = asked["InstanceInitiatedShutdownBehavior"]["Value"]
    row = call.region.store.put(row.changed(**facts))
    primary = row.facts["interfaces"][0]["id"]
    if "SourceDestCheck" in asked:
        change_card(call, row, primary, {"source_dest_check": asked["SourceDestCheck"]["Value"]})
    if asked.get("Groups"):
        change_card(call, row, primary, {"groups": list(asked["Groups"])})
    return {}


def _modify_metadata(call: Call) -> Answer:
    refuse_dry_run(call)
    row, asked = living(call, network.INSTANCE, call.parameters["InstanceId"]), call.parameters
    names = ("HttpTokens", "HttpPutResponseHopLimit", "HttpEndpoint", "HttpProtocolIpv6", "InstanceMetadataTags")
    given = {name[0].lower() + name[1:]: asked[name] for name in names if name in asked}
    row = call.region.store.put(row.changed(metadata_options={**row.facts["metadata_options"], **given}))
    return {"InstanceId": row.id, "InstanceMetadataOptions": compute.instance(call, row)["MetadataOptions"]}


def _stop_or_start(call: Call) -> Answer:
    for id in call.parameters.get("InstanceIds") or []:
        living(call, network.INSTANCE, id)
    refuse_dry_run(call)
    raise StandInRefusal("the stand-in neither stops nor starts machines yet (AWS does)")


MODIFY: dict[str, Handler] = {
    "ModifyVpcAttribute": _modify_vpc,
    "ModifySubnetAttribute": _modify_subnet,
    "ReplaceRoute": _replace_route,
    "ReplaceRouteTableAssociation": _replace_association,
    "ModifyVpcEndpoint": _modify_endpoint,
    "ModifySecurityGroupRules": _modify_rules,
    "ModifyCapacityReservation": _modify_reservation,
    "CreateLaunchTemplateVersion": create_version,
    "ModifyLaunchTemplate": _modify_template,
    "ModifyInstanceAttribute": _modify_instance,
    "ModifyInstanceMetadataOptions": _modify_metadata,
    "StopInstances": _stop_or_start,
    "StartInstances": _stop_or_start,
}
