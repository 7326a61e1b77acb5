"""State machines and schedules in the region: what AWS refuses, what the stand-in does not know, what boto3 sees."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any  # definitions and answers

import pytest
from clusterctl_infra.plan.ending_machine import DRY_RUN_INPUT, SCHEDULE_INPUT, ending_definition
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.types.deadline import ALARM, SCHEDULE, STATE_MACHINE, due_at
from clusterctl_rehearsal.region.types.identity import ROLE
from clusterctl_rehearsal.region.types.network import EIP, INSTANCE, NAT_GATEWAY
from clusterctl_rehearsal.states.definition import check_definition
from clusterctl_rehearsal.states.executions import Executions
from clusterctl_rehearsal.states.failure import TaskFailed

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.guarded_cluster import guarded
from tests.unit.rehearsal.small_region import REGION, TAGS, SmallRegion

SUCCEED: dict[str, Any] = {"Type": "Succeed"}
TASK: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:ec2:describeTags", "Next": "End"}


def machine(**states: Any) -> str:
    return json.dumps({"StartAt": next(iter(states)), "States": states})


@pytest.mark.parametrize(
    "definition",
    [
        "not JSON",
        "{}",
        machine(One={**TASK, "Next": "Nowhere"}),
        machine(One=SUCCEED, Two=SUCCEED),
        machine(One={"Type": "Pass"}),
        machine(
            One={
                "Type": "Map",
                "ItemsPath": "$.A",
                "MaxConcurrency": 41,
                "End": True,
                "ItemProcessor": {"StartAt": "In", "States": {"In": SUCCEED}},
            }
        ),
        machine(
            One={
                "Type": "Map",
                "ItemsPath": "$.A[*].B",
                "End": True,
                "ItemProcessor": {"StartAt": "In", "States": {"In": SUCCEED}},
            }
        ),
    ],
)
def test_a_definition_that_aws_refuses_is_refused(definition: str) -> None:
    with pytest.raises(AwsError) as refused:
        check_definition(definition)
    assert refused.value.code == "InvalidDefinition"


@pytest.mark.parametrize(
    "definition",
    [
        machine(One={"Type": "Parallel", "Branches": [], "End": True}),
        machine(One={**TASK, "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets"}, End=SUCCEED),
        machine(One={**TASK, "ResultSelector": {}}, End=SUCCEED),
        machine(One={**TASK, "Parameters": {"A.$": "States.Format('{}', $.B)"}}, End=SUCCEED),
    ],
)
def test_what_only_the_stand_in_cannot_run_is_refused_when_it_is_made_and_as_its_own_limit(definition: str) -> None:
    with pytest.raises(StandInRefusal, match="the stand-in"):
        check_definition(definition)


@pytest.mark.parametrize("expression", ["at(2026-11-21T17:22:00Z)", "at(2026-13-21T17:22:00)", "2026-11-21T17:22:00"])
def test_a_schedule_expression_that_aws_refuses_is_refused(expression: str) -> None:
    with pytest.raises(AwsError, match="Invalid Schedule Expression"):
        due_at(expression)


@pytest.mark.parametrize(
    ("services", "refused_by"), [(["states.amazonaws.com"], SCHEDULE), (["scheduler.amazonaws.com"], STATE_MACHINE)]
)
def test_a_role_that_the_service_may_not_assume_is_refused(
    world: SmallRegion, services: list[str], refused_by: str
) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": services}, "Action": "sts:AssumeRole"}
    role = world.make(ROLE, name="r", assumeRolePolicy=json.dumps({"Statement": [statement]})).outputs["arn"]
    target = {"arn": f"arn:aws:states:{REGION}:0:stateMachine:x", "roleArn": role}
    inputs: dict[str, dict[str, Any]] = {
        STATE_MACHINE: {"name": "m", "roleArn": role, "definition": machine(One=SUCCEED)},
        SCHEDULE: {
            "name": "s",
            "scheduleExpression": "at(2027-01-15T08:10:00)",
            "flexibleTimeWindow": {"mode": "OFF"},
            "target": target,
        },
    }
    with pytest.raises(AwsError, match="must allow"):
        world.make(refused_by, **inputs[refused_by])


def test_boto3_starts_describes_lists_and_deletes_a_state_machine(world: SmallRegion) -> None:
    arn = guarded(world).id
    client = Client(world)
    node = world.node(0)
    started = client.call("stepfunctions", "StartExecution", stateMachineArn=arn, input=DRY_RUN_INPUT)
    row = client.call("stepfunctions", "DescribeExecution", executionArn=started["executionArn"])
    assert (row["status"], json.loads(row["output"])[0]["Id"]) == ("SUCCEEDED", node.id)
    assert client.call("stepfunctions", "ListStateMachines")["stateMachines"][0]["stateMachineArn"] == arn
    tagged = client.call("resourcegroupstaggingapi", "GetResources", ResourceTypeFilters=["states:stateMachine"])
    assert [row["ResourceARN"] for row in tagged["ResourceTagMappingList"]] == [arn]
    client.call("stepfunctions", "DeleteStateMachine", stateMachineArn=arn)
    assert client.call("stepfunctions", "ListStateMachines")["stateMachines"] == []
    assert client.call("stepfunctions", "StartExecution", stateMachineArn=arn) == "StateMachineDoesNotExist"


def test_boto3_lists_and_deletes_a_schedule_by_its_name(world: SmallRegion) -> None:
    guarded(world)
    client = Client(world)
    (row,) = client.call("scheduler", "ListSchedules", NamePrefix="gua")["Schedules"]
    assert (row["Name"], row["GroupName"], row["State"]) == ("guard", "default", "ENABLED")
    assert client.call("scheduler", "ListSchedules", NamePrefix="other")["Schedules"] == []
    client.call("scheduler", "DeleteSchedule", Name="guard", GroupName="default")
    assert client.call("scheduler", "DeleteSchedule", Name="guard") == "ResourceNotFoundException"


def an_alarm(world: SmallRegion, metric: str, machine_arn: str) -> str:
    name = f"guard-{metric.lower()}"
    world.make(
        ALARM,
        name=name,
        namespace="AWS/States",
        metricName=metric,
        dimensions={"StateMachineArn": machine_arn},
        treatMissingData="ignore",
    )
    return name


def test_an_alarm_is_on_once_an_execution_of_its_machine_failed_in_its_way(world: SmallRegion) -> None:
    guarded(world)
    role = next(iter(world.store.live(ROLE))).outputs["arn"]
    definition = json.dumps({**ending_definition(TAGS["clusterctl:id"]), "TimeoutSeconds": -1})
    brief = world.make(STATE_MACHINE, name="brief", roleArn=role, definition=definition)
    failed, late = (an_alarm(world, metric, brief.id) for metric in ("ExecutionsFailed", "ExecutionsTimedOut"))
    client = Client(world)

    def states() -> dict[str, str]:
        rows = client.call("cloudwatch", "DescribeAlarms", AlarmNamePrefix="guard-")["MetricAlarms"]
        return {row["AlarmName"]: row["StateValue"] for row in rows}

    assert states() == {failed: "INSUFFICIENT_DATA", late: "INSUFFICIENT_DATA"}
    client.call("stepfunctions", "StartExecution", stateMachineArn=brief.id, input=SCHEDULE_INPUT)
    assert states() == {failed: "INSUFFICIENT_DATA", late: "ALARM"}
    client.call("cloudwatch", "DeleteAlarms", AlarmNames=[failed])
    assert states() == {late: "ALARM"}
    assert client.call("cloudwatch", "DeleteAlarms", AlarmNames=[failed]) == "ResourceNotFound"


def with_a_way_out(world: SmallRegion, tags: dict[str, str]) -> tuple[str, str]:
    """A NAT gateway with its address, both with these tags; their ids."""
    _, subnet, _ = world.network()
    address = world.make(EIP, domain="vpc", tags=tags)
    return world.make(NAT_GATEWAY, subnetId=subnet.id, allocationId=address.id, tags=tags).id, address.id


def test_the_end_takes_the_cluster_s_own_way_out_along_and_no_other_s(world: SmallRegion) -> None:
    machine = guarded(world)
    node = world.node(0)
    with_a_way_out(world, TAGS)
    others = with_a_way_out(world, {"clusterctl:id": "ba9876543210"})
    adopted = with_a_way_out(world, {})
    assert world.executions.start(machine, SCHEDULE_INPUT).status == "SUCCEEDED"
    assert node.id not in {row.id for row in world.store.live(INSTANCE)}
    assert {row.id for row in (*world.store.live(NAT_GATEWAY), *world.store.live(EIP))} == {*others, *adopted}


def test_a_way_out_that_aws_does_not_end_turns_the_alarm_on_and_keeps_no_machine_alive(world: SmallRegion) -> None:
    machine = guarded(world)
    node = world.node(0)
    with_a_way_out(world, TAGS)
    failed = an_alarm(world, "ExecutionsFailed", machine.id)
    asked = world.ec2

    def refusing(action: str, parameters: Any) -> Any:
        if action == "deleteNatGateway":
            raise TaskFailed("Ec2.Ec2Exception", "You are not authorized to perform this operation.")
        return asked(action, parameters)

    world.ec2 = refusing
    assert world.executions.start(machine, SCHEDULE_INPUT).error == "NetworkKept"
    (alarm,) = Client(world).call("cloudwatch", "DescribeAlarms", AlarmNamePrefix=failed)["MetricAlarms"]
    assert alarm["StateValue"] == "ALARM"
    assert node.id not in {row.id for row in world.store.live(INSTANCE)}


def test_an_alarm_on_anything_else_is_refused_as_the_stand_ins_own_limit(world: SmallRegion) -> None:
    with pytest.raises(StandInRefusal, match="only failures of state machines"):
        an_alarm(world, "ExecutionsStarted", "arn:aws:states:x")


def test_an_execution_that_takes_too_long_ends_as_timed_out(world: SmallRegion, tmp_path: Path) -> None:
    guarded(world)
    role = next(iter(world.store.live(ROLE))).outputs["arn"]
    definition = json.dumps({**ending_definition(TAGS["clusterctl:id"]), "TimeoutSeconds": 0})
    brief = world.make(STATE_MACHINE, name="brief", roleArn=role, definition=definition)
    seconds = itertools.count()
    executions = Executions(
        file=tmp_path / "executions.jsonl",
        calls=lambda region: world.ec2,
        clock=lambda: float(next(seconds)),
        pause=lambda seconds: None,
        begin=lambda run: run(),
    )
    row = executions.start(brief, SCHEDULE_INPUT)
    assert (row.status, row.error) == ("TIMED_OUT", "States.Timeout")
