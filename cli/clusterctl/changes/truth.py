"""What AWS has of the instances that a state knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.cloud.refusal import aws_errors
from clusterctl.engine.state import RESERVATION_TYPE, SlotInstance, StackState

ENDING = "shutting-down"
ENDING_S = 900.0
"""A big GPU machine takes minutes to end, and has its slot's address until then."""
ENDED_RESERVATIONS = ("cancelled", "expired", "failed", "unavailable")
POLL_S = 5.0
REHEARSAL_POLL_S = 0.3


@dataclass(frozen=True, kw_only=True)
class Missing:
    """An instance of the state that runs no more."""

    known: SlotInstance
    seen: InstanceState | None
    """None: AWS shows it no more."""

    @property
    def why(self) -> str:
        """AWS's word for it, with AWS's reason."""
        if self.seen is None:
            return "AWS does not know it"
        return self.seen.state + (f": {self.seen.reason}" if self.seen.reason else "")


def missing_instances(clients: Clients, state: StackState, *, tell: Callable[[str], None]) -> tuple[Missing, ...]:
    """The state's instances that are gone; what is still ending is waited for. Raises CloudError."""
    if not state.instances or state.cluster_id is None:
        return ()
    give_up = time.monotonic() + ENDING_S
    told = False
    while True:
        seen = {one.instance_id: one for one in instances_of(clients, state.cluster_id)}
        ending = [one for one in seen.values() if one.state == ENDING]
        if not ending or time.monotonic() > give_up:
            return _missing(state, seen)
        if not told:
            told = True
            tell(f"waiting for {', '.join(one.instance_id for one in ending)}, which is ending")
        time.sleep(REHEARSAL_POLL_S if clients.is_rehearsal else POLL_S)


def gone_reservations(clients: Clients, state: StackState) -> tuple[str, ...]:
    """URNs of the state's reservations that AWS holds no more: an early end cancels them. Raises CloudError.

    All are asked for: the call documents no filter by tag (EC2 API in botocore 1.44; 2026-11-21).
    """
    known = state.of_type(RESERVATION_TYPE)
    if not known or state.cluster_id is None:
        return ()
    with aws_errors(f"looking for the reservation of {state.cluster_id}"):
        pages = clients.ec2.get_paginator("describe_capacity_reservations").paginate()
        rows = [row for page in pages for row in page["CapacityReservations"]]
    held = {row["CapacityReservationId"] for row in rows if row["State"] not in ENDED_RESERVATIONS}
    return tuple(one.urn for one in known if one.id not in held)


def _missing(state: StackState, seen: dict[str, InstanceState]) -> tuple[Missing, ...]:
    return tuple(
        Missing(known=one, seen=seen.get(one.instance_id))
        for one in state.instances
        if one.instance_id not in seen or not seen[one.instance_id].is_alive
    )
