"""Capacity: reservations count whole, instances inside of them do not count again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP

from tests.unit.rehearsal.small_region import EVERYTHING, SmallRegion

RESERVED = EVERYTHING[CAPACITY_RESERVATION]
TARGETED = {**RESERVED, "instanceMatchCriteria": "targeted"}


def _into(reservation_id: str) -> dict[str, Any]:
    target = {"capacityReservationTarget": {"capacityReservationId": reservation_id}}
    return {"capacityReservationSpecification": target}


@pytest.fixture
def three(tmp_path: Path) -> SmallRegion:
    """A region with three p5.48xlarge."""
    return SmallRegion(tmp_path / "three", capacity={"p5.48xlarge": 3})


def test_a_reservation_of_four_is_refused_where_three_are(three: SmallRegion) -> None:
    with pytest.raises(AwsError) as caught:
        three.make(CAPACITY_RESERVATION, **{**RESERVED, "instanceCount": 4})
    assert caught.value.code == "InsufficientInstanceCapacity"
    assert caught.value.status == 500


def test_an_instance_without_a_place_is_told_awss_sentence(three: SmallRegion) -> None:
    three.make(CAPACITY_RESERVATION, **{**TARGETED, "instanceCount": 3})
    with pytest.raises(
        AwsError, match=r"^InsufficientInstanceCapacity: We currently do not have sufficient p5"
    ) as caught:
        three.node()
    assert "us-west-2b" in caught.value.message
    assert "us-west-2a, us-west-2c" in caught.value.message


def test_an_instance_in_a_reservation_uses_its_place_and_gives_it_back(three: SmallRegion) -> None:
    _, subnet, group = three.network()
    reservation = three.make(CAPACITY_RESERVATION, **{**TARGETED, "instanceCount": 2})
    templates = [three.template(subnet, group, slot, **_into(reservation.id)) for slot in range(3)]
    first, _ = three.launch(templates[0]), three.launch(templates[1])
    with pytest.raises(AwsError, match="ReservationCapacityExceeded"):
        three.launch(templates[2])
    three.region.delete(first.token, first.id)
    assert three.launch(templates[2]).facts["reservation"] == reservation.id


def test_an_open_reservation_takes_instances_that_name_none(three: SmallRegion) -> None:
    reservation = three.make(CAPACITY_RESERVATION, **{**RESERVED, "instanceCount": 3})
    assert three.node().facts["reservation"] == reservation.id


def test_an_instance_that_wants_no_reservation_gets_none(three: SmallRegion) -> None:
    three.make(CAPACITY_RESERVATION, **{**RESERVED, "instanceCount": 1})
    node = three.node(capacityReservationSpecification={"capacityReservationPreference": "none"})
    assert node.facts["reservation"] is None


def test_a_reservation_in_a_placement_group_wants_instances_of_that_group(three: SmallRegion) -> None:
    group = three.make(PLACEMENT_GROUP, name="neighbours", strategy="cluster")
    reserved = three.make(CAPACITY_RESERVATION, **{**RESERVED, "placementGroupArn": group.outputs["arn"]})
    with pytest.raises(AwsError, match="do not match"):
        three.node(**_into(reserved.id))


def test_a_grown_reservation_counts_the_difference(three: SmallRegion) -> None:
    made = three.make(CAPACITY_RESERVATION, **{**RESERVED, "instanceCount": 2})
    assert (
        three.region.update(CAPACITY_RESERVATION, made.id, {**RESERVED, "instanceCount": 3}).outputs["instanceCount"]
        == 3
    )
    with pytest.raises(AwsError, match="InsufficientInstanceCapacity"):
        three.region.update(CAPACITY_RESERVATION, made.id, {**RESERVED, "instanceCount": 4})


def test_vcpus_are_counted_against_the_quota(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path / "quota", quotas={"vcpus": 383})
    _, subnet, group = world.network()
    world.launch(world.template(subnet, group, 0))
    with pytest.raises(AwsError, match=r"VcpuLimitExceeded.*vCPU limit of 383"):
        world.launch(world.template(subnet, group, 1))


def test_a_fault_lays_another_capacity_over_the_settings_and_takes_it_away(three: SmallRegion) -> None:
    three.behaviour.set_fault_entry("capacity", "p5.48xlarge", 0)
    with pytest.raises(AwsError, match="InsufficientInstanceCapacity"):
        three.make(CAPACITY_RESERVATION, **RESERVED)
    three.behaviour.set_fault_entry("capacity", "p5.48xlarge", None)
    assert three.make(CAPACITY_RESERVATION, **RESERVED).id.startswith("cr-")


def test_a_reservation_ends_at_its_date_and_its_instances_run_on(three: SmallRegion) -> None:
    end = datetime.fromtimestamp(three.now + 60, UTC).isoformat()
    three.make(CAPACITY_RESERVATION, **{**RESERVED, "endDateType": "limited", "endDate": end})
    node = three.node()
    three.now += 120
    three.region.expire()
    assert list(three.store.live(CAPACITY_RESERVATION)) == []
    assert three.region.read(node.token, node.id) is not None
