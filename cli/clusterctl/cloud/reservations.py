"""The capacity reservations of a cluster as AWS sees them now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # EC2's answers: typed dictionaries with every key optional

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.resource import is_of

ENDED = ("cancelled", "expired", "failed", "unavailable")
"""States in which a reservation holds nothing, and bills nothing, any more."""
EXPIRED = "expired"


@dataclass(frozen=True, kw_only=True)
class ReservationState:
    """One reservation."""

    reservation_id: str
    instance_type: str
    places: int
    """For how many machines it holds room, whether or not they are there."""
    state: str
    created_at: datetime
    ends_at: datetime | None
    """Its end date; AWS ends it within the hour after."""

    @property
    def is_held(self) -> bool:
        """Whether it still reserves capacity, and bills."""
        return self.state not in ENDED


def reservations_of(clients: Clients, cluster_id: str) -> tuple[ReservationState, ...]:
    """The reservations with this cluster's id tag, oldest first, ended ones too while AWS shows them.

    All are asked for: the call documents no filter by tag (EC2 API in botocore 1.44; 2026-11-21). Raises CloudError.
    """
    with aws_errors(f"looking for the reservations of {cluster_id}"):
        pages = clients.ec2.get_paginator("describe_capacity_reservations").paginate()
        rows = [row for page in pages for row in page["CapacityReservations"]]
    own = (reservation_state(row) for row in rows if is_of(tags_of(row.get("Tags")), cluster_id))
    return tuple(sorted(own, key=lambda reservation: (reservation.created_at, reservation.reservation_id)))


def reservation_state(row: Mapping[str, Any]) -> ReservationState:
    """Reads one row of DescribeCapacityReservations."""
    return ReservationState(
        reservation_id=row["CapacityReservationId"],
        instance_type=row["InstanceType"],
        places=row.get("TotalInstanceCount", 0),
        state=row["State"],
        created_at=row["CreateDate"],
        ends_at=row.get("EndDate"),
    )
