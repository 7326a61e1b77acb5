"""How many machines of a type the region has left, and how many vCPUs the account may use."""

from __future__ import annotations

from clusterctl_infra.catalog.reader import Catalog

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.settings import IN_ZONE, Settings
from clusterctl_rehearsal.region.spot import is_spot
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.network import INSTANCE

CAPACITY_BLOCK = "capacity-block"
CAPACITY_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"


def reserved_by(store: Store, reservation_id: str) -> int:
    """How many living instances are in a reservation."""
    return sum(row.facts.get("reservation") == reservation_id for row in store.live(INSTANCE))


def counted(
    store: Store, region: str, instance_type: str | None = None, *, zone: str | None = None
) -> list[tuple[str, int]]:
    """(instance type, count) of all that takes capacity: reservations with all places, and instances outside of them.

    `zone`: counts only what is in this zone.
    """
    rows = on_demand(store, region, zone=zone) + [
        (str(row.facts["instance_type"]), 1)
        for row in store.live(INSTANCE)
        if row.region == region and is_spot(row) and zone in (None, row.facts["zone"])
    ]
    return [row for row in rows if instance_type is None or row[0] == instance_type]


def on_demand(store: Store, region: str, *, zone: str | None = None) -> list[tuple[str, int]]:
    """(instance type, count) of what takes capacity on demand: no spot machines, which have their own quota."""
    rows = [
        (str(row.inputs["instanceType"]), int(row.inputs["instanceCount"]))
        for row in store.live(CAPACITY_RESERVATION)
        if row.region == region and zone in (None, row.inputs["availabilityZone"])
    ]
    living = {row.id for row in store.live(CAPACITY_RESERVATION)}
    rows += [
        (str(row.facts["instance_type"]), 1)
        for row in store.live(INSTANCE)
        if row.region == region
        and row.facts.get("reservation") not in living
        and not is_spot(row)
        and zone in (None, row.facts["zone"])
    ]
    return rows


def check_room(
    store: Store, settings: Settings, region: str, instance_type: str, *, zone: str, more: int, message: str
) -> None:
    """Raises InsufficientInstanceCapacity unless the region and the zone have room for `more` of the type."""
    limits = ((instance_type, None), (f"{instance_type}{IN_ZONE}{zone}", zone))
    for name, place in limits:
        limit = settings.capacity.get(name)
        taken = sum(count for _, count in counted(store, region, instance_type, zone=place))
        if limit is not None and more > 0 and taken + more > limit:
            raise AwsError("InsufficientInstanceCapacity", message, status=500)


def check_vcpus(store: Store, settings: Settings, catalog: Catalog, region: str, *, more: int) -> None:
    """Raises VcpuLimitExceeded unless the account may use `more` vCPUs of on-demand machines."""
    limit = settings.quotas.get("vcpus")
    if limit is None or more <= 0:
        return
    used = 0
    for name, count in on_demand(store, region):
        kind = catalog.instance_type(name)
        used += count * (0 if kind is None else kind.vcpus)
    if used + more > limit:
        raise AwsError(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance "
            "bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )


def shortage(instance_type: str, zone: str, zones: tuple[str, ...]) -> str:
    """AWS's message for an instance that gets no capacity."""
    others = ", ".join(name for name in zones if name != zone)
    return (
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
        f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
        f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing {others}."
    )


def fitting_reservation(store: Store, request: dict[str, str | None]) -> Record | None:
    """The reservation that the instance goes into: the one it names, or an open one that fits.

    `request`: reservation, preference, instance_type, zone, placement_group (ARN), market.
    None if none fits, and none was required. Raises AWS's refusals.
    """
    wanted, preference = request["reservation"], request["preference"]
    rows = [row for row in store.live(CAPACITY_RESERVATION) if _fits(row, request)]
    if wanted is not None:
        named = store.get(CAPACITY_RESERVATION, wanted)
        if named is None or not named.is_live:
            raise AwsError(
                "InvalidCapacityReservationId.NotFound", f"The ID of the Capacity Reservation is invalid: {wanted}"
            )
        if named not in rows:
            raise AwsError(
                "InvalidParameterValue",
                f"The attributes of the instance do not match those of the Capacity Reservation {wanted}.",
            )
        _check_market(named, request["market"])
        rows = [named]
    elif preference == "none":
        return None
    else:
        if request["market"] == CAPACITY_BLOCK:
            raise AwsError("MissingParameter", "A Capacity Block is launched into by its Capacity Reservation's id.")
        rows = [row for row in rows if row.inputs.get("instanceMatchCriteria", "open") == "open"]
    free = next((row for row in rows if reserved_by(store, row.id) < int(row.inputs["instanceCount"])), None)
    if free is None and (wanted is not None or preference == "capacity-reservations-only"):
        raise AwsError(
            "ReservationCapacityExceeded",
            "The requested reservation does not have sufficient compatible and available capacity for this request.",
        )
    return free


def _check_market(reservation: Record, market: str | None) -> None:
    """Raises AwsError unless the reservation is active and for this market: a capacity block takes only machines of the
    market `capacity-block`, and no other reservation takes those (EC2 User Guide; the sentences are ours).
    """
    if reservation.state not in ("active", "available"):  # `available`: one that a stack made
        raise AwsError(
            "InvalidCapacityReservationState",
            f"The Capacity Reservation {reservation.id} is {reservation.state}, and not active.",
        )
    if bool(reservation.facts.get("is_block")) != (market == CAPACITY_BLOCK):
        raise AwsError(
            "InvalidParameterCombination",
            f"The market type '{market or 'on-demand'}' does not go with the Capacity Reservation {reservation.id}.",
        )


def _fits(row: Record, request: dict[str, str | None]) -> bool:
    group = row.inputs.get("placementGroupArn")
    return (
        row.inputs["instanceType"] == request["instance_type"]
        and row.inputs["availabilityZone"] == request["zone"]
        and (group is None or group == request["placement_group"])
    )
