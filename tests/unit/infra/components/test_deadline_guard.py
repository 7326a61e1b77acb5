"""What ends a cluster from outside: few resources, made before anything is paid, limited to the cluster's own id."""

from __future__ import annotations

import json
from typing import Any  # a policy's JSON

from clusterctl_infra.components.deadline_guard import policy_of
from clusterctl_infra.plan.ending_machine import SCHEDULE_INPUT, ending_definition

from tests.unit.infra.components.recorded_program import INSTANCE, Recording, cluster_program, record, short

CLUSTER_ID = "0123456789ab"
NAME = f"clusterctl-{CLUSTER_ID}-deadline"
ALARM = "aws:cloudwatch/metricAlarm:MetricAlarm"
SCHEDULE = "aws:scheduler/schedule:Schedule"
STATE_MACHINE = "aws:sfn/stateMachine:StateMachine"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"


def test_the_schedule_starts_the_state_machine_at_the_deadline(four_nodes: Recording) -> None:
    schedule = four_nodes.one(SCHEDULE).inputs
    assert schedule["scheduleExpression"] == "at(2026-03-02T12:00:00)"
    assert (schedule["scheduleExpressionTimezone"], schedule["flexibleTimeWindow"]) == ("UTC", {"mode": "OFF"})
    assert schedule["target"] == {
        "arn": "train-deadline-machine-arn",
        "roleArn": "train-deadline-role-arn",
        "input": SCHEDULE_INPUT,
    }
    assert schedule["name"] == NAME
    assert len(NAME) <= 64
    assert json.loads(four_nodes.one(STATE_MACHINE).inputs["definition"]) == ending_definition(CLUSTER_ID)


def test_the_guard_is_there_before_anything_is_paid(four_nodes: Recording) -> None:
    for row in (four_nodes.one(RESERVATION), *four_nodes.of_type(INSTANCE)):
        assert "Schedule train-deadline" in {short(urn) for urn in row.request.dependencies}
    assert "RolePolicy train-deadline" in {short(urn) for urn in four_nodes.one(SCHEDULE).request.dependencies}


def test_alarms_tell_of_a_state_machine_that_failed_or_did_not_end(four_nodes: Recording) -> None:
    rows = {row.inputs["metricName"]: row.inputs for row in four_nodes.of_type(ALARM)}
    assert sorted(rows) == ["ExecutionsFailed", "ExecutionsTimedOut"]
    for metric, inputs in rows.items():
        assert inputs["name"] == f"{NAME}-{metric.lower()}"
        assert inputs["dimensions"] == {"StateMachineArn": "train-deadline-machine-arn"}
        assert (inputs["treatMissingData"], inputs.get("alarmActions")) == ("ignore", None)


def test_a_cluster_that_is_down_has_no_guard() -> None:
    rows = record(cluster_program(down=True)).resources
    assert not [row for row in rows if row.type in (SCHEDULE, STATE_MACHINE, ALARM)]


def test_a_later_deadline_changes_the_schedule_alone() -> None:
    """By name and definition nothing else of the guard knows the deadline."""
    first, other = (record(cluster_program(caps={"runtime": runtime})) for runtime in ("24h", "30h"))
    expressions = [made.one(SCHEDULE).inputs["scheduleExpression"] for made in (first, other)]
    assert expressions == ["at(2026-03-02T12:00:00)", "at(2026-03-02T18:00:00)"]
    assert first.one(SCHEDULE).inputs["name"] == other.one(SCHEDULE).inputs["name"]
    assert first.one(STATE_MACHINE).inputs["definition"] == other.one(STATE_MACHINE).inputs["definition"]


def test_the_role_may_end_what_carries_the_clusters_id_and_start_its_own_state_machine() -> None:
    policy: Any = policy_of(CLUSTER_ID, region="us-west-2", account_id="123456789012")
    looks, ends, starts = policy["Statement"]
    assert {action.removeprefix("ec2:")[:8] for action in looks["Action"]} == {"Describe"}
    assert ends["Condition"] == {"StringEquals": {"aws:ResourceTag/clusterctl:id": CLUSTER_ID}}
    assert all(":us-west-2:123456789012:" in resource for resource in ends["Resource"])
    assert starts["Resource"] == f"arn:aws:states:us-west-2:123456789012:stateMachine:{NAME}"


def test_in_chinas_regions_every_arn_is_of_their_own_cloud() -> None:
    policy: Any = policy_of(CLUSTER_ID, region="cn-north-1", account_id="123456789012")
    assert policy["Statement"][2]["Resource"].startswith("arn:aws-cn:states:")
    assert "arn:aws:" not in json.dumps(ending_definition(CLUSTER_ID, partition="aws-cn"))


EARLY_END = "RolePolicy train-early-end"


def test_nodes_may_start_the_state_machine_and_nothing_else_where_they_may_end_the_cluster() -> None:
    rows = record(cluster_program(caps={"idle": "45m"}))
    (policy,) = [row for row in rows.resources if short(row.urn) == EARLY_END]
    (statement,) = json.loads(policy.inputs["policy"])["Statement"]
    assert statement["Action"] == "states:StartExecution"
    assert statement["Resource"].endswith(f":stateMachine:{policy_name(rows)}")
    for node in rows.of_type(INSTANCE):
        assert EARLY_END in {short(urn) for urn in node.request.dependencies}


def policy_name(rows: Recording) -> str:
    name: str = rows.one(STATE_MACHINE).inputs["name"]
    return name


def test_without_such_a_rule_nodes_have_no_right(four_nodes: Recording) -> None:
    assert EARLY_END not in {short(row.urn) for row in four_nodes.resources}
