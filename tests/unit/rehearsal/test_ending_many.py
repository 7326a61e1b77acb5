"""The definition that ends a cluster, where machines are many, end late, or are missing in AWS's answers."""

from __future__ import annotations

import pytest
from clusterctl_infra.plan.ending_machine import (
    DRY_RUN_INPUT,
    LEAVING_PAUSE_S,
    SCHEDULE_INPUT,
    SPARED,
    THROTTLED_PAUSE_S,
)
from clusterctl_rehearsal.states.failure import ExecutionFailed
from clusterctl_rehearsal.states.interpreter import ANSWER_LIMIT_BYTES, EVENT_LIMIT
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.rehearsal.many_machines import UNSURE_INPUT, Clock, Fleet, executed


@pytest.mark.parametrize(("given", "least_bytes"), [(SCHEDULE_INPUT, ANSWER_LIMIT_BYTES // 2), (DRY_RUN_INPUT, 0)])
def test_256_nodes_of_33_interfaces_with_an_address_each_stay_within_awss_limits(given: str, least_bytes: int) -> None:
    fleet = Fleet(256, 33)
    fleet.addresses = {f"eipalloc-{number:017x}" for number in range(256)}
    fleet.untagged = set(list(fleet.living)[:100])  # so that these are left to the pages of descriptions
    execution, _, _ = executed(fleet, given)
    assert any(fleet.living.values()) is (given == DRY_RUN_INPUT)
    assert least_bytes < fleet.largest < ANSWER_LIMIT_BYTES
    assert execution.events < EVENT_LIMIT / 2


def test_all_machines_end_in_the_first_wave_without_a_wait() -> None:
    fleet = Fleet(64, 1)
    fleet.cancelled = 1
    _, clock, _ = executed(fleet)
    assert not any(fleet.living.values())
    assert clock.now == 0


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(0, 23),
    refused=st.dictionaries(st.integers(0, 22), st.integers(1, 4)),
    untagged=st.sets(st.integers(0, 22)),
    empty_pages=st.integers(0, 2),
)
def test_whatever_is_refused_found_late_or_paged_away_nothing_is_left(
    nodes: int, refused: dict[int, int], untagged: set[int], empty_pages: int
) -> None:
    fleet = Fleet(nodes, 1, refusals={f"i-{number:017x}": times for number, times in refused.items()})
    fleet.untagged = {f"i-{number:017x}" for number in untagged}
    fleet.empty_pages = empty_pages
    executed(fleet)
    assert not any(fleet.living.values())
    assert fleet.cancelled == 1


def test_a_machine_that_never_ends_fails_the_execution_and_keeps_none_of_the_others_alive() -> None:
    fleet = Fleet(7, 1, refusals={"i-00000000000000000": 10_000})
    with pytest.raises(ExecutionFailed, match=r"States\.Timeout"):
        executed(fleet)
    assert [id for id, lives in fleet.living.items() if lives] == ["i-00000000000000000"]


def test_where_reservations_are_not_told_every_machine_ends_and_the_execution_fails() -> None:
    fleet = Fleet(7, 1)
    fleet.untagged = set(list(fleet.living)[:3])
    fleet.tells_reservations = False
    with pytest.raises(ExecutionFailed, match="ReservationsUnknown"):
        executed(fleet)
    assert not any(fleet.living.values())
    assert fleet.cancelled  # by the ids from the tags


def test_where_no_tag_of_a_reservation_is_told_every_machine_ends_and_the_execution_fails() -> None:
    fleet = Fleet(7, 1)
    fleet.tells_tags = False
    with pytest.raises(ExecutionFailed, match="ReservationsUnknown"):
        executed(fleet)
    assert not any(fleet.living.values())


def test_the_way_out_ends_when_the_last_machine_has_ended_and_addresses_when_the_gateway_is_deleted() -> None:
    fleet = with_a_way_out()
    fleet.shutting_down_s, fleet.looks_until_deleted = 200, 3
    executed(fleet)  # the account refuses to be asked for gateways before that, and to release an address in use
    assert (fleet.gateways, fleet.addresses) == ({}, set())
    assert fleet.clock.now >= 200 + 3 * LEAVING_PAUSE_S


def test_256_addresses_are_released_within_aws_s_limits() -> None:
    fleet = Fleet(256, 33)
    fleet.addresses = {f"eipalloc-{number:017x}" for number in range(256)}
    execution, _, _ = executed(fleet)
    assert not fleet.addresses
    assert execution.events < EVENT_LIMIT / 2


@pytest.mark.parametrize(("held", "kept"), [("nat-0", {"eipalloc-0", "eipalloc-1"}), ("eipalloc-0", {"eipalloc-0"})])
def test_a_way_out_that_aws_does_not_end_fails_the_execution_after_all_else_has_ended(
    held: str, kept: set[str]
) -> None:
    fleet = with_a_way_out()
    fleet.held = {held}
    with pytest.raises(ExecutionFailed, match="NetworkKept"):
        executed(fleet)
    assert not any(fleet.living.values())
    assert fleet.cancelled == 1
    assert fleet.addresses == kept, "a gateway holds its address, and the test's other one"


def with_a_way_out() -> Fleet:
    """Two machines, a NAT gateway and two addresses."""
    fleet = Fleet(2, 1)
    fleet.gateways = {"nat-0": "available"}
    fleet.addresses = {"eipalloc-0", "eipalloc-1"}
    return fleet


def test_a_dry_run_without_machines_tries_what_else_bills_and_ends_nothing() -> None:
    fleet = Fleet(0, 1)
    fleet.gateways, fleet.addresses, fleet.held = {"nat-0": "available"}, {"eipalloc-0"}, {"nat-0"}
    _, _, answers = executed(fleet, DRY_RUN_INPUT)
    assert {row["Id"]: row["Kind"] for row in answers} == {
        "cr-0": "capacity-reservation",
        "cr-1": "capacity-reservation",
        "nat-0": "natgateway",
        "eipalloc-0": "elastic-ip",
    }
    assert [row["Id"] for row in answers if "not authorized" in row["Answer"]["Cause"]] == ["nat-0"]
    assert (fleet.cancelled, fleet.gateways, fleet.addresses) == (0, {"nat-0": "available"}, {"eipalloc-0"})


@pytest.mark.parametrize(
    "call", ["describeInstances", "describeNatGateways", "describeAddresses", "describeCapacityReservations"]
)
def test_a_dry_run_fails_where_the_role_may_not_look_at_what_it_would_have_to_end(call: str) -> None:
    fleet = Fleet(2, 1)
    fleet.not_allowed = {call}
    with pytest.raises(ExecutionFailed, match="not authorized"):
        executed(fleet, DRY_RUN_INPUT)


def test_a_dry_run_that_asks_too_often_asks_again_until_every_machine_was_told_of() -> None:
    fleet = Fleet(4, 1, refusals={"i-00000000000000001": 2, "i-00000000000000003": 1})
    _, clock, answers = executed(fleet, DRY_RUN_INPUT)
    machines = [row for row in answers if row["Kind"] == "instance"]
    assert [row["Id"] for row in machines] == list(fleet.living)
    assert all("DryRun flag is set" in row["Answer"]["Cause"] for row in machines)
    assert all(fleet.living.values())
    assert clock.now == 3 * THROTTLED_PAUSE_S


def test_a_slot_0_that_is_made_anew_between_two_looks_spares_the_cluster() -> None:
    """`replace --node 0`: the old machine is gone, and the new one there some seconds later."""
    fleet = Fleet(3, 1)
    clock = Clock()
    fleet.slot_0 = lambda: clock.now > 300
    assert executed(fleet, UNSURE_INPUT, clock=clock)[2] == SPARED
    assert all(fleet.living.values())
    assert fleet.asked == ["describeInstances", "describeInstances"]
