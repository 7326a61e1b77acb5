"""EC2's calls that launch machines, make what belongs to them, and change tags; for networks see `ec2_network_make`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_attributes import shown_tags
from clusterctl_rehearsal.api.ec2_network_make import MAKE_NETWORK
from clusterctl_rehearsal.api.ec2_views import tagged
from clusterctl_rehearsal.api.interfaces import change_card
from clusterctl_rehearsal.api.launch_templates import create_launch_template
from clusterctl_rehearsal.api.making import made, named_tags, refuse_dry_run, retag
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import Properties, Record
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


RESERVED_PREFIX = "aws:"
"""How the keys of tags that AWS itself sets begin."""
FEWER = ("InsufficientInstanceCapacity", "VcpuLimitExceeded", "InsufficientFreeAddressesInSubnet")
"""Error codes after which a request for several machines gets those already made, if they reach its minimum."""


def _create_placement_group(call: Call) -> dict[str, Any]:
    asked = call.parameters
    record = made(call, PLACEMENT_GROUP, {"name": asked["GroupName"], "strategy": asked.get("Strategy", "cluster")})
    return {"PlacementGroup": tagged(call, record, compute.placement_group(call, record))}


def _create_capacity_reservation(call: Call) -> dict[str, Any]:
    asked = call.parameters
    inputs: Properties = {name: asked[key] for key, name in _RESERVATION_INPUTS.items() if key in asked}
    inputs["instanceCount"] = int(inputs["instanceCount"])
    if "EndDate" in asked:
        inputs["endDate"] = compute.utc_text(asked["EndDate"])
    record = made(call, CAPACITY_RESERVATION, inputs)
    return {"CapacityReservation": tagged(call, record, compute.capacity_reservation(call, record))}


def _run_instances(call: Call) -> dict[str, Any]:
    """Launches machines that exist only as records: only the engine's plugin boots real ones."""
    refuse_dry_run(call)
    asked = call.parameters
    least, most = int(asked.get("MinCount", 1)), int(asked.get("MaxCount", 1))
    if not 1 <= least <= most:
        raise AwsError("InvalidParameterValue", f"Invalid value '{least}' for min instance count.")
    if most > 1 and asked.get("PrivateIpAddress"):
        message = "You cannot specify a private IP address when launching more than one instance."
        raise AwsError("InvalidParameterCombination", message)
    inputs: Properties = {name: asked[key] for key, name in _INSTANCE_INPUTS.items() if key in asked}
    template, profile = asked.get("LaunchTemplate") or {}, asked.get("IamInstanceProfile") or {}
    if template:
        named = {"id": template.get("LaunchTemplateId"), "name": template.get("LaunchTemplateName")}
        inputs["launchTemplate"] = {**named, "version": template.get("Version")}
    if profile:
        inputs["iamInstanceProfile"] = profile.get("Name") or profile.get("Arn")
    _refuse_ended(call)
    rows = _launch_while_there_is_room(call, inputs, least, most)
    views = [{**tagged(call, row, compute.instance(call, row)), "AmiLaunchIndex": at} for at, row in enumerate(rows)]
    return {**compute.reservation(call, rows[0], views[0]), "Instances": views}


def _launch_while_there_is_room(call: Call, inputs: Properties, least: int, most: int) -> list[Record]:
    """Launches up to `most` machines; if there is no room for `least`, ends those already made and raises AwsError."""
    rows: list[Record] = []
    for number in range(most):
        try:
            rows.append(made(call, INSTANCE, inputs, number=number))
        except AwsError as e:
            if e.code in FEWER and len(rows) >= least:
                break
            for row in rows:
                call.region.instances.terminate(row)
            raise
    return rows


def _refuse_ended(call: Call) -> None:
    """Raises AwsError for a client token whose machine has ended: AWS does not launch for it again.

    Source: EC2 API, "Ensuring idempotency"; 2026-11-26.
    """
    token = call.parameters.get("ClientToken")
    if token and any(row.request == token and not row.is_live for row in call.records(INSTANCE)):
        message = "The client token was used for a request whose instance has been terminated."
        raise AwsError("IdempotentInstanceTerminated", message)


def _create_tags(call: Call) -> dict[str, Any]:
    refuse_dry_run(call)
    _retag_all(call, lambda tags: {**tags, **named_tags(call.parameters["Tags"])})
    return {}


def _delete_tags(call: Call) -> dict[str, Any]:
    """Removes the tags that the request names; if it names none, all but AWS's own, `aws:…`."""
    refuse_dry_run(call)
    gone = {tag["Key"]: tag.get("Value") for tag in call.parameters.get("Tags") or []}

    def stays(key: str, value: str) -> bool:
        if not gone:
            return key.startswith(RESERVED_PREFIX)
        return key not in gone or gone[key] not in (None, value)

    _retag_all(call, lambda tags: {key: value for key, value in tags.items() if stays(key, value)})
    return {}


def _retag_all(call: Call, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Changes the tags of all resources that the request names; with one bad id, nothing is changed."""
    ids = call.parameters["Resources"]
    found = [_tagged_resource(call, id) for id in ids]
    for named, id in zip(found, ids, strict=True):
        row = call.region.store.get(named.token, named.id) or named  # an earlier id of this request may have changed it
        part = next((part for part in shown_tags(row) if part[0] == id), None)
        if part is None:
            retag(call, row, change(row.tags))
        elif part[1] == "volume":
            kinds = {**row.facts["resource_tags"], "volume": change(part[2])}
            call.region.store.put(row.changed(resource_tags=kinds))
        else:
            change_card(call, row, id, {"tags": change(part[2])})


def _tagged_resource(call: Call, id: str) -> Record:
    """The resource with the id, or the machine whose disk or interface has the id. Raises AwsError."""
    for row in call.region.store.live():
        ids = (row.id, row.outputs.get("placementGroupId"), row.outputs.get("keyPairId"))
        if row.region == call.region_name and (id in ids or any(part[0] == id for part in shown_tags(row))):
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
