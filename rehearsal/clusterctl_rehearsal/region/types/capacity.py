"""Placement groups and capacity reservations."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION, check_room, check_vcpus
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.region.types.row import Request, ResourceType, random_hex

PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"


def _placement_group(request: Request) -> Properties:
    return {
        "arn": f"arn:aws:ec2:{request.region}:{ACCOUNT_ID}:placement-group/{request.inputs['name']}",
        "placementGroupId": f"pg-{random_hex(17)}",
        "partitionCount": 0,
    }


def _check_reservation(request: Request) -> None:
    inputs = request.inputs
    name = inputs["instanceType"]
    kind = request.catalog.instance_type(name)
    if kind is None:
        raise AwsError("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]")
    if inputs["availabilityZone"] not in request.zone_names():
        raise AwsError(
            "InvalidParameterValue", f"Value ({inputs['availabilityZone']}) for parameter availabilityZone is invalid."
        )
    _check_end(request)
    _check_placement(request)
    count = int(inputs["instanceCount"])
    before = 0 if request.old is None else int(request.old.inputs["instanceCount"])
    # A count below what is in use is accepted: an active reservation may be changed freely (EC2 User Guide, "Modify a
    # Capacity Reservation", read 2026-11), and the instances beyond it go on as ordinary on-demand ones.
    if count < 1:
        raise AwsError("InvalidParameterValue", f"Value ({count}) for parameter InstanceCount is invalid.")
    check_vcpus(request.store, request.settings, request.catalog, request.region, more=(count - before) * kind.vcpus)
    check_room(
        request.store,
        request.settings,
        request.region,
        name,
        zone=inputs["availabilityZone"],
        more=count - before,
        message="Insufficient capacity.",
    )


def _check_end(request: Request) -> None:
    limited, date = request.inputs.get("endDateType") == "limited", request.inputs.get("endDate")
    if limited != (date is not None):
        raise AwsError(
            "InvalidParameterCombination", "EndDate must be provided if, and only if, EndDateType is 'limited'."
        )
    if date is None:
        return
    try:
        end = datetime.fromisoformat(date)
    except ValueError as e:
        raise AwsError("InvalidParameterValue", f"Value ({date}) for parameter EndDate is invalid.") from e
    if end <= datetime.fromtimestamp(request.now, UTC):
        raise AwsError(
            "InvalidParameterValue", f"Value ({date}) for parameter EndDate is invalid. The date is in the past."
        )


def _check_placement(request: Request) -> None:
    arn = request.inputs.get("placementGroupArn")
    if arn is None:
        return
    group = next((row for row in request.store.live(PLACEMENT_GROUP) if row.outputs["arn"] == arn), None)
    if group is None:
        raise AwsError("InvalidPlacementGroup.Unknown", f"The placement group '{arn}' does not exist.")
    if group.inputs.get("strategy") != "cluster":
        raise AwsError(
            "InvalidParameterValue", "Capacity Reservations can only be created in cluster placement groups."
        )


CAPACITY_TYPES = (
    ResourceType(
        token=PLACEMENT_GROUP,
        label="EC2 Placement Group",
        create="CreatePlacementGroup",
        delete="DeletePlacementGroup",
        not_found="InvalidPlacementGroup.Unknown",
        source="internal/service/ec2/ec2_placement_group.go",
        replace=("name", "partitionCount", "spreadLevel", "strategy"),
        name="name",
        unique=(("name",), "InvalidPlacementGroup.Duplicate", "The placement group '{name}' already exists."),
        blocked_by=(INSTANCE,),
        blocked=("InvalidPlacementGroup.InUse", "The placement group '{id}' is in use and may not be deleted."),
        outputs=_placement_group,
    ),
    ResourceType(
        token=CAPACITY_RESERVATION,
        label="EC2 Capacity Reservation",
        prefix="cr",
        create="CreateCapacityReservation",
        delete="CancelCapacityReservation",
        not_found="InvalidCapacityReservationId.NotFound",
        source="internal/service/ec2/ec2_capacity_reservation.go",
        replace=(
            "availabilityZone",
            "ebsOptimized",
            "ephemeralStorage",
            "instanceMatchCriteria",
            "instancePlatform",
            "instanceType",
            "tenancy",
        ),
        defaults={
            "ebsOptimized": False,
            "endDateType": "unlimited",
            "ephemeralStorage": False,
            "instanceMatchCriteria": "open",
            "tenancy": "default",
        },
        check=_check_reservation,
        outputs=lambda request: {"arn": request.arn("capacity-reservation"), "ownerId": ACCOUNT_ID},
    ),
)
