"""The very definition that ends a cluster at its deadline, run against the region's EC2."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any  # parameters and answers

import pytest
from clusterctl_infra.plan.ending_machine import DOUBT_S, DRY_RUN_INPUT, SCHEDULE_INPUT, SPARED, ending_definition
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.schedules import Schedules
from clusterctl_rehearsal.region.types.deadline import SCHEDULE, STATE_MACHINE
from clusterctl_rehearsal.region.types.identity import ROLE
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.states.failure import ExecutionFailed, TaskFailed
from clusterctl_rehearsal.states.interpreter import ANSWER_LIMIT_BYTES, EVENT_LIMIT, Execution
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import EVERYTHING, TAGS, SmallRegion

CLUSTER_ID = TAGS["clusterctl:id"]
SERVICES = ["scheduler.amazonaws.com", "states.amazonaws.com"]
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": SERVICES}, "Action": "sts:AssumeRole"}]}
DEADLINE = 1_800_000_600
AT = "at(2027-01-15T08:10:00)"


def guarded(world: SmallRegion, **schedule: Any) -> Record:
    """The role, the state machine and the schedule of the cluster; the machine asks the region's EC2."""
    role = world.make(ROLE, name="guard", assumeRolePolicy=json.dumps(TRUST)).outputs["arn"]
    definition = json.dumps(ending_definition(CLUSTER_ID))
    machine = world.make(STATE_MACHINE, name="guard", roleArn=role, definition=definition, tags=TAGS)
    target = {"arn": machine.id, "roleArn": role, "input": SCHEDULE_INPUT}
    given = {"scheduleExpression": AT, "flexibleTimeWindow": {"mode": "OFF"}, "target": target, **schedule}
    world.make(SCHEDULE, name="guard", **given)
    world.ec2 = region_ec2(world)
    return machine


def region_ec2(world: SmallRegion) -> Callable[[str, Mapping[str, Any]], Any]:
    """EC2 as boto3 sees it; terminated machines are gone at once."""
    client = Client(world)

    def call(action: str, parameters: Mapping[str, Any]) -> Any:
        answer = client.ec2(action[0].upper() + action[1:], **parameters)
        if isinstance(answer, str):
            raise TaskFailed("Ec2.Ec2Exception", answer)
        answer.pop("ResponseMetadata", None)
        return json.loads(json.dumps(answer, default=str))

    return call


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


def test_a_dry_run_says_of_every_machine_that_it_would_end_and_ends_none(world: SmallRegion) -> None:
    machine = guarded(world)
    node = world.node(0)
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    row = world.executions.start(machine, DRY_RUN_INPUT)
    assert row.status == "SUCCEEDED"
    assert row.output is not None
    assert [(one["Id"], one["Answer"]["Cause"]) for one in json.loads(row.output)] == [(node.id, "DryRunOperation")]
    assert living(world) == [node.id]
    assert len(list(world.store.live(CAPACITY_RESERVATION))) == 1


UNSURE_INPUT = '{"WaitSeconds": 300, "IfSlot0IsGone": true}'


@pytest.mark.parametrize("state", ["pending", "running", "stopped", "shutting-down"])
def test_who_is_not_sure_that_slot_0_died_ends_nothing_while_it_has_a_machine(world: SmallRegion, state: str) -> None:
    machine = guarded(world)
    zero, one = world.node(0), world.node(1)
    world.store.put(zero.changed(state=state))
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    row = world.executions.start(machine, UNSURE_INPUT)
    assert (row.status, json.loads(row.output or "")) == ("SUCCEEDED", SPARED)
    assert one.id in living(world)
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


def test_a_slot_0_that_is_made_anew_between_two_looks_spares_the_cluster() -> None:
    """`replace --node 0`: the old machine is gone, and the new one there some seconds later."""
    fleet = Fleet(3, 1)
    clock = Clock()
    fleet.slot_0 = lambda: clock.now > 300
    execution = Execution(
        definition=ending_definition(CLUSTER_ID), call=fleet.call, pause=clock.pause, clock=lambda: clock.now
    )
    assert execution.run(json.loads(UNSURE_INPUT)) == SPARED
    assert all(fleet.living.values())
    assert fleet.asked == ["describeInstances", "describeInstances"]


class Fleet:
    """An EC2 with many machines whose answers are as large as AWS's; some machines end late or by no call at all."""

    def __init__(self, nodes: int, interfaces: int, *, refusals: Mapping[str, int] | None = None) -> None:
        card = {f"Field{number}": "x" * 30 for number in range(25)}
        self.cards = [card] * interfaces
        self.living = {f"i-{number:017x}": True for number in range(nodes)}
        self.untagged: set[str] = set()
        self.refusals = dict(refusals or {})
        self.asked: list[str] = []
        self.largest = 0
        self.empty_pages = 0
        self.cancelled = 0
        self.tells_reservations = True
        self.slot_0: Callable[[], bool] = lambda: False
        """Whether it has a machine, for who asks about that alone."""

    def call(self, action: str, parameters: Mapping[str, Any]) -> Any:
        self.asked.append(action)
        answer = getattr(self, action)(parameters)
        self.largest = max(self.largest, len(json.dumps(answer)))
        return answer

    def describeTags(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802 (EC2 names it)
        tag = {"Key": "clusterctl:id", "ResourceType": "instance", "Value": CLUSTER_ID}
        return {"Tags": [{**tag, "ResourceId": id} for id in self.living if id not in self.untagged]}

    def describeInstances(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        if any(row["Name"] == "tag:clusterctl:slot" for row in parameters["Filters"]):
            return {"Reservations": [{"Instances": [{"InstanceId": "i-0"}]}] if self.slot_0() else []}
        ids = [id for id, lives in self.living.items() if lives]
        start = int(parameters.get("NextToken", 0))
        if start == 0 and self.empty_pages:  # AWS may answer an empty page with a token
            self.empty_pages -= 1
            return {"Reservations": [], "NextToken": "0"}
        page = ids[start : start + parameters["MaxResults"]]
        rest = start + parameters["MaxResults"]
        rows = [{"Instances": [{"InstanceId": id, "NetworkInterfaces": self.cards}]} for id in page]
        return {"Reservations": rows, **({"NextToken": str(rest)} if rest < len(ids) else {})}

    def describeCapacityReservations(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        if not self.tells_reservations:
            raise TaskFailed("Ec2.Ec2Exception", "InvalidParameterValue")
        return {"CapacityReservations": [] if self.cancelled else [{"CapacityReservationId": "cr-1"}]}

    def cancelCapacityReservation(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        self.cancelled += 1
        return {"Return": True}

    def terminateInstances(self, parameters: Mapping[str, Any]) -> Any:  # noqa: N802
        (id,) = parameters["InstanceIds"]
        if parameters.get("DryRun"):
            said = "Request would have succeeded, but DryRun flag is set. (Service: Ec2, Status Code: 412)"
            raise TaskFailed("Ec2.Ec2Exception", said)
        if self.refusals.get(id, 0) > 0:
            self.refusals[id] -= 1
            raise TaskFailed("Ec2.Ec2Exception", "RequestLimitExceeded")
        self.living[id] = False
        return {"TerminatingInstances": [{"InstanceId": id}]}


class Clock:
    """Time passes only where the machine waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds


def executed(fleet: Fleet, given: str = SCHEDULE_INPUT) -> tuple[Execution, Clock, Any]:
    clock = Clock()
    execution = Execution(
        definition=ending_definition(CLUSTER_ID), call=fleet.call, pause=clock.pause, clock=lambda: clock.now
    )
    return execution, clock, execution.run(json.loads(given))


@pytest.mark.parametrize("given", [SCHEDULE_INPUT, DRY_RUN_INPUT])
def test_256_nodes_of_33_interfaces_stay_within_awss_limits(given: str) -> None:
    fleet = Fleet(256, 33)
    fleet.untagged = set(list(fleet.living)[:100])  # so that these are left to the pages of descriptions
    execution, _, _ = executed(fleet, given)
    assert any(fleet.living.values()) is (given == DRY_RUN_INPUT)
    assert fleet.largest < ANSWER_LIMIT_BYTES
    assert given == DRY_RUN_INPUT or fleet.largest > ANSWER_LIMIT_BYTES / 2
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


def test_a_dry_run_without_machines_ends_nothing_and_cancels_nothing() -> None:
    fleet = Fleet(0, 1)
    executed(fleet, DRY_RUN_INPUT)
    assert fleet.asked == ["describeTags"]


def test_an_execution_that_nodes_start_lets_them_save_first(world: SmallRegion) -> None:
    machine = guarded(world)
    world.node(0)
    began = world.now
    world.executions.start(machine, '{"WaitSeconds": 320}', name="idle-x")
    (row,) = world.executions.of_machine(machine.id)
    assert row.arn.endswith(":execution:guard:idle-x")
    assert (row.status, living(world)) == ("SUCCEEDED", [])
    assert world.now - began >= 320
