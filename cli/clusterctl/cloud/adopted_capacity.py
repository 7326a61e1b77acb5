"""A reservation or a capacity block that exists: what AWS says of it, and what keeps a cluster from using it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final  # EC2's answers: typed dictionaries with every key optional

from clusterctl_infra.adopted import AdoptedCapacity
from clusterctl_infra.errors import CloudError

from clusterctl.cloud.answers import OddAnswer, text_in
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

ACTIVE = "active"
NOT_BEGUN = ("scheduled", "payment-pending", "assessing", "delayed", "pending")
BLOCK_RESERVATION_TYPE = "capacity-block"
PLATFORM: Final = "Linux/UNIX"
SHOW = "aws ec2 describe-capacity-reservations --region {region} --capacity-reservation-ids {id}"


@dataclass(frozen=True, kw_only=True)
class FoundCapacity:
    """A reservation as AWS describes it now."""

    reservation_id: str
    instance_type: str
    zone: str
    state: str
    places: int
    free: int
    is_block: bool
    platform: str
    starts_at: datetime | None
    ends_at: datetime | None
    placement_group: str | None
    """The name of the group that it is in."""

    def adopted(self) -> AdoptedCapacity:
        """What the plan needs to know of the reservation."""
        return AdoptedCapacity(
            reservation_id=self.reservation_id,
            instance_type=self.instance_type,
            zone=self.zone,
            ends_at=self.ends_at,
            placement_group=self.placement_group,
        )


def find_capacity(clients: Clients, reservation_id: str) -> FoundCapacity:
    """The reservation with this id, the account's own or shared with it. Raises CloudError."""
    with aws_errors(f"looking at the reservation {reservation_id}"):
        answer = clients.ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])
    rows = answer["CapacityReservations"]
    if not rows:
        raise CloudError(
            f"the reservation {reservation_id} is not in {clients.region}, or not shared with this account",
            code="InvalidCapacityReservationId.NotFound",
            hint=f"aws ec2 describe-capacity-reservations --region {clients.region}",
        )
    found = found_capacity(rows[0])
    if found.reservation_id != reservation_id:
        raise OddAnswer(f"with {found.reservation_id}, asked for {reservation_id}")
    return found


def found_capacity(row: Mapping[str, Any]) -> FoundCapacity:
    """Reads one row of DescribeCapacityReservations. Raises CloudError if it lacks its id, instance type or zone."""
    group = row.get("PlacementGroupArn")
    id = text_in(row, "CapacityReservationId", "a reservation")
    return FoundCapacity(
        reservation_id=id,
        instance_type=text_in(row, "InstanceType", id),
        zone=text_in(row, "AvailabilityZone", id),
        state=row.get("State", "unknown"),
        places=row.get("TotalInstanceCount", 0),
        free=row.get("AvailableInstanceCount", 0),
        is_block=row.get("ReservationType") == BLOCK_RESERVATION_TYPE,
        platform=row.get("InstancePlatform", PLATFORM),
        starts_at=row.get("StartDate"),
        ends_at=row.get("EndDate"),
        placement_group=None if not group else str(group).rpartition("/")[2],
    )


def not_begun(found: FoundCapacity) -> str | None:
    """Why machines cannot be launched into a reservation yet, but can be later; None: it has begun, or is over."""
    if found.state not in NOT_BEGUN:
        return None
    begins = "" if found.starts_at is None else f": it begins at {found.starts_at:%Y-%m-%d %H:%M} UTC"
    return f"{found.reservation_id} is {found.state}{begins}"


def capacity_problem(found: FoundCapacity, *, as_block: bool, machines: int, now: datetime) -> str | None:
    """Why `machines` more cannot be launched into a reservation; None: they can.

    `as_block`: cluster.yaml names it as a capacity block.
    """
    id = found.reservation_id
    if found.is_block != as_block:
        if found.is_block:
            return f"{id} is a capacity block: write capacity_block: {id}"
        return f"{id} is not a capacity block: write reservation: {id}"
    later = not_begun(found)
    if later is not None:
        return f"{later}; run clusterctl up then"
    if found.state != ACTIVE:
        return f"{id} is {found.state}: it holds no place any more"
    if found.ends_at is not None and found.ends_at <= now:
        return f"{id} ended at {found.ends_at:%Y-%m-%d %H:%M} UTC"
    if found.platform != PLATFORM:
        return f"{id} is for {found.platform}, and nodes run {PLATFORM}"
    if found.free < machines:
        places = f"{found.free} of its {found.places} places"
        return f"{id} has {places} free, and {machines} are needed: fewer nodes, or a larger reservation"
    return None
