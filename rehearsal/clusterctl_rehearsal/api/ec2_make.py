"""EC2's calls that make something through its API, beside what the engine makes: placement groups, reservations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_views import tagged
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP

_RESERVATION_INPUTS: Mapping[str, str] = {
    "InstanceType": "instanceType",
    "InstanceCount": "instanceCount",
    "InstancePlatform": "instancePlatform",
    "AvailabilityZone": "availabilityZone",
    "InstanceMatchCriteria": "instanceMatchCriteria",
    "PlacementGroupArn": "placementGroupArn",
    "EndDateType": "endDateType",
}


def _create_placement_group(call: Call) -> dict[str, Any]:
    asked = call.parameters
    made = _made(call, PLACEMENT_GROUP, {"name": asked["GroupName"], "strategy": asked.get("Strategy", "cluster")})
    return {"PlacementGroup": tagged(call, made, compute.placement_group(call, made))}


def _create_capacity_reservation(call: Call) -> dict[str, Any]:
    asked = call.parameters
    inputs: Properties = {name: asked[key] for key, name in _RESERVATION_INPUTS.items() if key in asked}
    inputs["instanceCount"] = int(inputs["instanceCount"])
    if "EndDate" in asked:
        inputs["endDate"] = _instant(asked["EndDate"])
    made = _made(call, CAPACITY_RESERVATION, inputs)
    return {"CapacityReservation": tagged(call, made, compute.capacity_reservation(call, made))}


def _made(call: Call, token: str, inputs: Properties) -> Record:
    if call.parameters.get("DryRun"):
        raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)
    specifications = call.parameters.get("TagSpecifications") or []
    tags = {tag["Key"]: tag["Value"] for row in specifications for tag in row.get("Tags", [])}
    return call.region.create(
        token,
        {**inputs, "tags": tags},
        region=call.region_name,
        request=str(call.parameters.get("ClientToken", "")),
        machines="none",
        progress=lambda _: None,
    )


def _instant(value: object) -> str:
    at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _dry_run_alone(call: Call) -> dict[str, Any]:
    """Whether one may is all that is asked so: the engine makes these."""
    if call.parameters.get("DryRun"):
        raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)
    raise StandInRefusal(f"the stand-in answers {call.operation} with DryRun alone")


MAKE: dict[str, Handler] = {
    "CreatePlacementGroup": _create_placement_group,
    "CreateCapacityReservation": _create_capacity_reservation,
    **dict.fromkeys(("CreateVpc", "CreateInternetGateway", "CreateLaunchTemplate", "AllocateAddress"), _dry_run_alone),
}
