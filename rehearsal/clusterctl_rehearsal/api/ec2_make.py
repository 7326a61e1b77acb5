"""EC2's calls that make machines and what belongs to them, and tags; networks are in `ec2_network_make`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_network_make import MAKE_NETWORK
from clusterctl_rehearsal.api.ec2_views import tagged
from clusterctl_rehearsal.api.launch_templates import create_launch_template
from clusterctl_rehearsal.api.making import made, named_tags, refuse_dry_run, retag
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.refusal import AwsError
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.network import INSTANCE

_RESERVATION_INPUTS: Mapping[str, str] = {
    "InstanceType": "instanceType",
    "InstanceCount": "instanceCount",
    "InstancePlatform": "instancePlatform",
    "AvailabilityZone": "availabilityZone",
    "InstanceMatchCriteria": "instanceMatchCriteria",
    "PlacementGroupArn": "placementGroupArn",
    "EndDateType": "endDateType",
}
_INSTANCE_INPUTS: Mapping[str, str] = {
    "ImageId": "ami",
    "InstanceType": "instanceType",
    "SubnetId": "subnetId",
    "SecurityGroupIds": "vpcSecurityGroupIds",
    "PrivateIpAddress": "privateIp",
    "KeyName": "keyName",
    "UserData": "userDataBase64",
    "InstanceInitiatedShutdownBehavior": "instanceInitiatedShutdownBehavior",
}


def _create_placement_group(call: Call) -> dict[str, Any]:
    asked = call.parameters
    record = made(call, PLACEMENT_GROUP, {"name": asked["GroupName"], "strategy": asked.get("Strategy", "cluster")})
    return {"PlacementGroup": tagged(call, record, compute.placement_group(call, record))}


def _create_capacity_reservation(call: Call) -> dict[str, Any]:
    asked = call.parameters
    inputs: Properties = {name: asked[key] for key, name in _RESERVATION_INPUTS.items() if key in asked}
    inputs["instanceCount"] = int(inputs["instanceCount"])
    if "EndDate" in asked:
        inputs["endDate"] = _instant(asked["EndDate"])
    record = made(call, CAPACITY_RESERVATION, inputs)
    return {"CapacityReservation": tagged(call, record, compute.capacity_reservation(call, record))}


def _instant(value: object) -> str:
    at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _run_instances(call: Call) -> dict[str, Any]:
    """Machines that are data alone: only the engine's plugin says what is to be booted."""
    refuse_dry_run(call)
    asked = call.parameters
    inputs: Properties = {name: asked[key] for key, name in _INSTANCE_INPUTS.items() if key in asked}
    template, profile = asked.get("LaunchTemplate") or {}, asked.get("IamInstanceProfile") or {}
    if template:
        named = {"id": template.get("LaunchTemplateId"), "name": template.get("LaunchTemplateName")}
        inputs["launchTemplate"] = {**named, "version": template.get("Version")}
    if profile:
        inputs["iamInstanceProfile"] = profile.get("Name") or profile.get("Arn")
    if asked.get("MaxCount") != 1:
        raise AwsError("InvalidParameterValue", "The stand-in runs one instance for each call yet (AWS more).")
    record = made(call, INSTANCE, inputs)
    return compute.reservation(call, record, tagged(call, record, compute.instance(call, record)))


def _create_tags(call: Call) -> dict[str, Any]:
    refuse_dry_run(call)
    rows = [_tagged_resource(call, id) for id in call.parameters["Resources"]]
    for row in rows:
        retag(call, row, {**row.tags, **named_tags(call.parameters["Tags"])})
    return {}


def _delete_tags(call: Call) -> dict[str, Any]:
    """Without tags in the request all go, but for those of AWS's own."""
    refuse_dry_run(call)
    for row in [_tagged_resource(call, id) for id in call.parameters["Resources"]]:
        gone = {tag["Key"]: tag.get("Value") for tag in call.parameters.get("Tags") or []}
        kept = {
            key: value
            for key, value in row.tags.items()
            if gone and (key not in gone or gone[key] not in (None, value))
        }
        retag(call, row, kept)
    return {}


def _tagged_resource(call: Call, id: str) -> Record:
    for row in call.region.store.live():
        if id in (row.id, row.outputs.get("placementGroupId")) and row.region == call.region_name:
            return row
    raise AwsError("InvalidID", f"The ID '{id}' is not valid")


MAKE: dict[str, Handler] = {
    **MAKE_NETWORK,
    "CreatePlacementGroup": _create_placement_group,
    "CreateCapacityReservation": _create_capacity_reservation,
    "CreateLaunchTemplate": create_launch_template,
    "RunInstances": _run_instances,
    "CreateTags": _create_tags,
    "DeleteTags": _delete_tags,
}
