"""Executions of state machines: how each ends, what alarm follows, and what is remembered of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any  # definitions and answers

import pytest
from clusterctl_infra.plan.ending_machine import SCHEDULE_INPUT
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.schedules import Schedules
from clusterctl_rehearsal.region.types.deadline import ALARM, SCHEDULE, STATE_MACHINE
from clusterctl_rehearsal.region.types.identity import ROLE
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.states.definition import check_definition
from clusterctl_rehearsal.states.executions import KEPT, Executions
from clusterctl_rehearsal.states.failure import ExecutionFailed

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.guarded_cluster import DEADLINE, TRUST, guarded
from tests.unit.rehearsal.small_region import SmallRegion

SUCCEED: dict[str, Any] = {"Type": "Succeed"}
TASK: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:ec2:describeTags", "End": True}
IF_A: dict[str, Any] = {"Type": "Choice", "Choices": [{"Variable": "$.A", "IsPresent": True, "Next": "End"}]}


def definition(**states: Any) -> str:
    return json.dumps({"StartAt": next(iter(states)), "States": states})


def made(world: SmallRegion, **states: Any) -> Record:
    """A state machine of these states."""
    role = world.make(ROLE, name="states", assumeRolePolicy=json.dumps(TRUST)).outputs["arn"]
    return world.make(STATE_MACHINE, name="machine", roleArn=role, definition=definition(**states))


def watched(world: SmallRegion, machine: Record) -> Callable[[], tuple[str, float]]:
    """An alarm on failures of the machine; gives its state, and since when it has had it."""
    world.make(
        ALARM,
        name="guard-failed",
        namespace="AWS/States",
        metricName="ExecutionsFailed",
        dimensions={"StateMachineArn": machine.id},
        treatMissingData="ignore",
    )

    def state() -> tuple[str, float]:
        (row,) = Client(world).call("cloudwatch", "DescribeAlarms", AlarmNames=["guard-failed"])["MetricAlarms"]
        return row["StateValue"], row["StateUpdatedTimestamp"].timestamp()

    return state


@pytest.mark.parametrize(
    ("given", "status", "error"),
    [('{"A": 1}', "SUCCEEDED", None), ('{"B": 1}', "FAILED", "States.NoChoiceMatched")],
)
def test_a_choice_without_a_default_fails_only_where_no_rule_holds(
    world: SmallRegion, given: str, status: str, error: str | None
) -> None:
    row = world.executions.start(made(world, If=IF_A, End=SUCCEED), given)
    assert (row.status, row.error) == (status, error)


def test_an_execution_that_breaks_unexpectedly_has_failed_and_says_why(
    world: SmallRegion, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = made(world, Wait={"Type": "Wait", "SecondsPath": "$.S", "End": True})
    alarm = watched(world, machine)
    row = world.executions.start(machine, '{"S": "soon"}')
    assert (row.status, row.error, row.ended_at) == ("FAILED", "States.Runtime", world.now)
    assert "could not convert string to float: 'soon'" in str(row.cause)
    assert "Traceback" in capsys.readouterr().err
    assert alarm() == ("ALARM", world.now)


def test_an_input_that_is_no_json_is_refused_as_by_aws(world: SmallRegion) -> None:
    machine = made(world, End=SUCCEED)
    client = Client(world)
    for given in ("not JSON", '{"A": '):
        refused = client.call("stepfunctions", "StartExecution", stateMachineArn=machine.id, input=given)
        assert refused == "InvalidExecutionInput"
    assert client.call("stepfunctions", "ListExecutions", stateMachineArn=machine.id)["executions"] == []


def test_a_schedule_with_an_input_that_is_no_json_is_refused(world: SmallRegion) -> None:
    machine = guarded(world)
    (row,) = world.store.live(SCHEDULE)
    target = {**row.inputs["target"], "arn": machine.id, "input": "not JSON"}
    with pytest.raises(AwsError, match="ValidationException"):
        world.region.update(SCHEDULE, row.id, {**row.inputs, "target": target})


def test_a_deadline_whose_execution_fails_ends_nothing_and_turns_the_alarm_on_for_good(world: SmallRegion) -> None:
    machine = guarded(world)
    node = world.node(0)
    alarm = watched(world, machine)

    def broken(action: str, parameters: Mapping[str, Any]) -> Any:
        raise RuntimeError("the region's fault, and no task's")

    world.ec2 = broken
    world.now = DEADLINE + 60.0
    Schedules(region=world.region, executions=world.executions).fire_due()
    (failed,) = world.executions.of_machine(machine.id)
    assert (failed.status, failed.cause) == ("FAILED", "RuntimeError: the region's fault, and no task's")
    assert [row.id for row in world.store.live(INSTANCE)] == [node.id]
    assert alarm() == ("ALARM", world.now)
    since = world.now
    for _ in range(KEPT + 1):
        world.now += 1
        world.executions.start(machine, SCHEDULE_INPUT)
    again = SmallRegion(world.folder)
    assert watching(again) == ("ALARM", since)


def watching(world: SmallRegion) -> tuple[str, float]:
    (row,) = Client(world).call("cloudwatch", "DescribeAlarms")["MetricAlarms"]
    return row["StateValue"], row["StateUpdatedTimestamp"].timestamp()


def test_a_deadline_whose_end_cannot_be_written_down_is_not_done(world: SmallRegion) -> None:
    machine = guarded(world)
    node = world.node(0)
    world.folder.joinpath("executions.jsonl").mkdir()  # as a disk that takes nothing
    world.ec2 = refusing
    world.now = DEADLINE + 60.0
    with pytest.raises(IsADirectoryError):
        Schedules(region=world.region, executions=world.executions).fire_due()
    assert [row.status for row in world.executions.of_machine(machine.id)] == ["FAILED"]
    world.folder.joinpath("executions.jsonl").rmdir()
    next_region = SmallRegion(world.folder)
    next_region.ec2 = refusing
    next_region.now = world.now + 1
    Schedules(region=next_region.region, executions=next_region.executions).fire_due()
    assert [row.status for row in next_region.executions.of_machine(machine.id)] == ["FAILED"]
    assert [row.id for row in next_region.store.live(INSTANCE)] == [node.id]


def refusing(action: str, parameters: Mapping[str, Any]) -> Any:
    raise ExecutionFailed("States.Runtime", "nothing works")


def test_what_runs_is_remembered_however_many_others_end(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path)
    machine = made(world, End=SUCCEED)
    held: list[Callable[[], None]] = []
    executions = held_executions(tmp_path, world, held)
    first = executions.start(machine, "{}", name="first")
    for number in range(KEPT + 20):
        world.now += 1
        executions.start(machine, "{}", name=f"later-{number}")
        held.pop()()
    assert executions.find(first.arn) == first
    assert len(executions.of_machine(machine.id)) == KEPT + 1
    world.now += 1
    held.pop()()
    found = executions.find(first.arn)
    assert found is not None
    assert found.status == "SUCCEEDED"


def held_executions(folder: Path, world: SmallRegion, held: list[Callable[[], None]]) -> Executions:
    """Executions of which each waits in `held` until the test runs it."""
    return Executions(
        file=folder / "executions.jsonl",
        calls=lambda region: world.ec2,
        clock=lambda: world.now,
        pause=lambda seconds: None,
        begin=held.append,
    )


def test_the_next_region_knows_the_executions_that_have_ended(world: SmallRegion) -> None:
    machine = made(world, If=IF_A, End=SUCCEED)
    ended = [world.executions.start(machine, given, name=given[2]) for given in ('{"A": 1}', '{"B": 1}')]
    with world.folder.joinpath("executions.jsonl").open("a") as file:
        file.write('{"arn": "torn')
    again = SmallRegion(world.folder)
    assert list(again.executions.of_machine(machine.id)) == ended
    with pytest.raises(AwsError, match="ExecutionAlreadyExists"):
        again.executions.start(machine, "{}", name="A")


def test_the_file_of_executions_holds_no_more_than_are_remembered(world: SmallRegion) -> None:
    machine = made(world, End=SUCCEED)
    for number in range(KEPT + 5):
        world.executions.start(machine, "{}", name=f"run-{number}")
    again = SmallRegion(world.folder)
    assert len(again.executions.of_machine(machine.id)) == KEPT
    assert len(world.folder.joinpath("executions.jsonl").read_text().splitlines()) == KEPT


@pytest.mark.parametrize(
    ("path", "given", "output"),
    [
        ("$.a.b", {}, {"a": {"b": [7]}}),
        ("$.a.b", {"a": {"c": 1}, "d": 2}, {"a": {"c": 1, "b": [7]}, "d": 2}),
        ("$.a", {"a": {"c": 1}}, {"a": [7]}),
        ("$", {"a": 1}, [7]),
        (None, {"a": 1}, {"a": 1}),
    ],
)
def test_a_result_is_put_where_its_path_leads(
    world: SmallRegion, path: str | None, given: dict[str, Any], output: object
) -> None:
    row = world.executions.start(made(world, Put=putting(path)), json.dumps(given))
    assert json.loads(row.output or "null") == output


def putting(path: str | None) -> dict[str, Any]:
    return {"Type": "Pass", "Result": [7], "ResultPath": path, "End": True}


@pytest.mark.parametrize("given", ["5", '{"a": 5}', '{"a": [1]}'])
def test_a_result_that_has_no_place_in_the_input_fails_the_execution(world: SmallRegion, given: str) -> None:
    row = world.executions.start(made(world, Put=putting("$.a.b")), given)
    assert (row.status, row.error) == ("FAILED", "States.ResultPathMatchFailure")


def test_a_catcher_hears_of_a_result_that_has_no_place(world: SmallRegion) -> None:
    world.ec2 = lambda action, parameters: {}
    caught = {**TASK, "ResultPath": "$.a.b", "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}]}
    row = world.executions.start(made(world, Ask=caught, End=SUCCEED), '{"a": 5}')
    assert (row.status, json.loads(row.output or "")["Error"]) == ("SUCCEEDED", "States.ResultPathMatchFailure")


@pytest.mark.parametrize("path", ["$.a[0]", "$$.a", "$[1]"])
def test_a_result_s_path_that_the_stand_in_cannot_follow_is_refused_when_the_machine_is_made(path: str) -> None:
    with pytest.raises(StandInRefusal, match="the stand-in puts no result at"):
        check_definition(definition(Put=putting(path)))
