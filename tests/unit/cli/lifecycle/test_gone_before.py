"""Reservations past their end date, which AWS has ended before `down` could."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.last_look import expired_reservations

RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"


def test_only_reservations_past_their_end_are_expired() -> None:
    past = StateResource(urn="urn:past", type=RESERVATION, id="cr-1", inputs={"endDate": "2026-11-21T10:00:00Z"})
    to_come = StateResource(urn="urn:to-come", type=RESERVATION, id="cr-2", inputs={"endDate": "2026-11-21T12:00:00Z"})
    endless = StateResource(urn="urn:endless", type=RESERVATION, id="cr-3", inputs={})
    state = StackState(resources=(past, to_come, endless))
    assert expired_reservations(state, now=datetime(2026, 11, 21, 11, tzinfo=UTC)) == ("urn:past",)
