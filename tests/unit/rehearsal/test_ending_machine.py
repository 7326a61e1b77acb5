"""The very definition that ends a cluster at its deadline, run against the region's EC2."""

from __future__ import annotations

import json

import pytest
from clusterctl_infra.plan.ending_machine import DOUBT_S, DRY_RUN_INPUT, SPARED
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.schedules import Schedules
from clusterctl_rehearsal.region.types.deadline import SCHEDULE
from clusterctl_rehearsal.region.types.network import INSTANCE

from tests.unit.rehearsal.guarded_cluster import DEADLINE, guarded
from tests.unit.rehearsal.many_machines import UNSURE_INPUT
from tests.unit.rehearsal.small_region import EVERYTHING, TAGS, SmallRegion


def living(world: SmallRegion) -> list[str]:
    return [row.id for row in world.store.live(INSTANCE) if row.state in ("pending", "running")]


def test_a_schedule_ends_every_machine_and_the_reservation_once_its_time_has_come(world: SmallRegion) -> None:
    guarded(world)
    world.node(0)
    other = world.node(1, tagSpecifications=[{"resourceType": "instance", "tags": {"clusterctl:id": "another"}}])
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    schedules = Schedules(region=world.region, executions=world.executions)
    world.now = DEADLINE + 59.0
    schedules.fire_due()
    assert len(living(world)) == 2
    world.now = DEADLINE + 60.0
    schedules.fire_due()
    assert living(world) == [other.id]
    assert list(world.store.live(CAPACITY_RESERVATION)) == []


def test_a_schedule_fires_once_and_again_when_the_deadline_moved(world: SmallRegion) -> None:
    guarded(world)
    schedules = Schedules(region=world.region, executions=world.executions)
    world.now = DEADLINE + 100.0
    schedules.fire_due()
    later = world.node(0)
    schedules.fire_due()
    assert living(world) == [later.id]
    (row,) = world.store.live(SCHEDULE)
    world.region.update(SCHEDULE, row.id, {**row.inputs, "scheduleExpression": "at(2027-01-15T08:11:00)"})
    world.now = DEADLINE + 121.0
    schedules.fire_due()
    assert living(world) == []


def test_a_schedule_that_was_missed_or_cut_off_is_fired_by_the_next_region(world: SmallRegion) -> None:
    guarded(world)
    world.node(0)
    world.now = DEADLINE + 7200.0
    (row,) = world.store.live(SCHEDULE)
    world.store.put(row.changed(fired="at(2026-01-01T00:00:00)"))
    Schedules(region=world.region, executions=world.executions).fire_due()
    assert living(world) == []


def test_a_disabled_schedule_does_not_fire(world: SmallRegion) -> None:
    guarded(world, state="DISABLED")
    node = world.node(0)
    world.now = DEADLINE + 7200.0
    Schedules(region=world.region, executions=world.executions).fire_due()
    assert living(world) == [node.id]


def test_a_dry_run_says_of_all_that_it_would_end_and_ends_nothing(world: SmallRegion) -> None:
    machine = guarded(world)
    node = world.node(0)
    held = world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    row = world.executions.start(machine, DRY_RUN_INPUT)
    assert row.status == "SUCCEEDED"
    assert row.output is not None
    answers = {answer["Id"]: (answer["Kind"], answer["Answer"]["Cause"]) for answer in json.loads(row.output)}
    sentence = "Request would have succeeded, but DryRun flag is set."
    assert {id: (kind, cause.partition(" (")[0]) for id, (kind, cause) in answers.items()} == {
        node.id: ("instance", sentence),
        held.id: ("capacity-reservation", sentence),
    }
    assert living(world) == [node.id]
    assert len(list(world.store.live(CAPACITY_RESERVATION))) == 1


@pytest.mark.parametrize("state", ["pending", "running", "stopped", "shutting-down"])
def test_who_is_not_sure_that_slot_0_died_ends_nothing_while_it_has_a_machine(world: SmallRegion, state: str) -> None:
    machine = guarded(world)
    zero, first = world.node(0), world.node(1)
    world.store.put(zero.changed(state=state))
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    row = world.executions.start(machine, UNSURE_INPUT)
    assert (row.status, json.loads(row.output or "")) == ("SUCCEEDED", SPARED)
    assert first.id in living(world)
    assert len(list(world.store.live(CAPACITY_RESERVATION))) == 1


def test_who_is_not_sure_that_slot_0_died_has_all_ended_when_it_has_none(world: SmallRegion) -> None:
    machine = guarded(world)
    zero, _ = world.node(0), world.node(1)
    world.store.put(zero.changed(state="terminated"))
    began = world.now
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    row = world.executions.start(machine, UNSURE_INPUT)
    assert (row.status, living(world), list(world.store.live(CAPACITY_RESERVATION))) == ("SUCCEEDED", [], [])
    assert json.loads(row.output or "") != SPARED
    assert world.now - began >= 300 + DOUBT_S


def test_an_execution_that_nodes_start_lets_them_save_first(world: SmallRegion) -> None:
    machine = guarded(world)
    world.node(0)
    began = world.now
    world.executions.start(machine, '{"WaitSeconds": 320}', name="idle-x")
    (row,) = world.executions.of_machine(machine.id)
    assert row.arn.endswith(":execution:guard:idle-x")
    assert (row.status, living(world)) == ("SUCCEEDED", [])
    assert world.now - began >= 320
