"""Step Functions' state machines, EventBridge Scheduler's one-time schedules, CloudWatch's alarms on these machines."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties
from clusterctl_rehearsal.region.types.identity import ROLE
from clusterctl_rehearsal.region.types.row import Request, ResourceType
from clusterctl_rehearsal.states.definition import check_definition

STATE_MACHINE = "aws:sfn/stateMachine:StateMachine"
ALARM = "aws:cloudwatch/metricAlarm:MetricAlarm"
SCHEDULE = "aws:scheduler/schedule:Schedule"
FAILED_METRIC, TIMED_OUT_METRIC = "ExecutionsFailed", "ExecutionsTimedOut"
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_NAME = re.compile(r"[0-9a-zA-Z-_.]{1,64}")


def due_at(expression: str) -> datetime:
    """The instant of `at(2026-11-21T17:22:00)`, in UTC. Raises AwsError, StandInRefusal."""
    found = _AT.fullmatch(expression)
    if found is None:
        if expression.startswith(("rate(", "cron(")):
            raise StandInRefusal(f"so far the stand-in fires only one-time schedules, not {expression}")
        raise AwsError("ValidationException", f"Invalid Schedule Expression {expression}.")
    try:
        return datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError as e:
        raise AwsError("ValidationException", f"Invalid Schedule Expression {expression}.") from e


def _check_machine(request: Request) -> None:
    _check_role(request, str(request.inputs.get("roleArn")), "states.amazonaws.com", "AccessDeniedException")
    check_definition(str(request.inputs.get("definition")))


def _check_schedule(request: Request) -> None:
    inputs = request.inputs
    due_at(str(inputs.get("scheduleExpression")))
    if not _NAME.fullmatch(str(inputs["name"])):
        raise AwsError("ValidationException", f"name '{inputs['name']}' is not 1 to 64 of letters, digits, - _ and .")
    if (inputs.get("flexibleTimeWindow") or {}).get("mode") != "OFF":
        raise StandInRefusal("so far the stand-in fires only schedules without a flexible time window")
    if inputs.get("scheduleExpressionTimezone", "UTC") != "UTC":
        raise StandInRefusal("so far the stand-in reads only schedules in UTC")
    target = inputs.get("target") or {}
    if ":stateMachine:" not in str(target.get("arn")):
        raise StandInRefusal("so far the stand-in's schedules start only state machines")
    _check_role(request, str(target.get("roleArn")), "scheduler.amazonaws.com", "ValidationException")
    _check_target_input(target.get("input"))


def _check_target_input(given: str | None) -> None:
    """Raises AwsError unless a state machine can start with it (Scheduler API, Target; 2026-11-26)."""
    try:
        json.loads(given or "{}")
    except ValueError as e:
        raise AwsError("ValidationException", f"The target's input is not well-formed JSON: {e}") from e


def _check_alarm(request: Request) -> None:
    inputs = request.inputs
    watched = (inputs.get("namespace"), inputs.get("metricName"))
    if watched not in (("AWS/States", FAILED_METRIC), ("AWS/States", TIMED_OUT_METRIC)):
        raise StandInRefusal(f"so far the stand-in's alarms watch only failures of state machines, not {watched}")
    if inputs.get("treatMissingData") != "ignore":
        raise StandInRefusal("so far the stand-in's alarms only know treatMissingData: ignore")


def _check_role(request: Request, arn: str, service: str, code: str) -> None:
    role = next((row for row in request.store.live(ROLE) if row.outputs["arn"] == arn), None)
    services = [] if role is None else _trusted(str(role.inputs["assumeRolePolicy"]))
    if service not in services:
        raise AwsError(code, f"The execution role {arn} must allow {service} to assume the role.")


def _trusted(policy: str) -> list[str]:
    found = [row.get("Principal", {}).get("Service", []) for row in json.loads(policy)["Statement"]]
    return [name for names in found for name in ([names] if isinstance(names, str) else names)]


def _machine_arn(name: str, region: str) -> str:
    return f"arn:aws:states:{region}:{ACCOUNT_ID}:stateMachine:{name}"


def _machine(request: Request) -> Properties:
    return {"arn": request.id, "creationDate": request.timestamp(), "status": "ACTIVE"}


def _alarm(request: Request) -> Properties:
    return {"arn": f"arn:aws:cloudwatch:{request.region}:{ACCOUNT_ID}:alarm:{request.inputs['name']}"}


def _schedule(request: Request) -> Properties:
    group, name = request.inputs["groupName"], request.inputs["name"]
    return {"arn": f"arn:aws:scheduler:{request.region}:{ACCOUNT_ID}:schedule/{group}/{name}"}


DEADLINE_TYPES = (
    ResourceType(
        token=STATE_MACHINE,
        label="Step Functions State Machine",
        service="SFN",
        create="CreateStateMachine",
        delete="DeleteStateMachine",
        not_found="StateMachineDoesNotExist",
        source="internal/service/sfn/state_machine.go",
        replace=("name", "namePrefix", "type"),
        name="name",
        unique=(("name",), "StateMachineAlreadyExists", "State Machine Already Exists: '{id}'"),
        defaults={"type": "STANDARD"},
        id=lambda inputs, region: _machine_arn(inputs["name"], region),
        check=_check_machine,
        outputs=_machine,
    ),
    ResourceType(
        token=SCHEDULE,
        label="EventBridge Scheduler Schedule",
        service="Scheduler",
        create="CreateSchedule",
        delete="DeleteSchedule",
        not_found="ResourceNotFoundException",
        source="internal/service/scheduler/schedule.go",
        replace=("groupName", "name", "namePrefix"),
        name="name",
        unique=(("groupName", "name"), "ConflictException", "Schedule {name} already exists."),
        taggable=False,
        defaults={
            "groupName": "default",
            "scheduleExpressionTimezone": "UTC",
            "state": "ENABLED",
            "actionAfterCompletion": "NONE",
        },
        id=lambda inputs, region: f"{inputs['groupName']}/{inputs['name']}",
        check=_check_schedule,
        outputs=_schedule,
    ),
    ResourceType(
        token=ALARM,
        label="CloudWatch Metric Alarm",
        service="CloudWatch",
        create="PutMetricAlarm",
        delete="DeleteAlarms",
        not_found="ResourceNotFound",
        source="internal/service/cloudwatch/metric_alarm.go",
        replace=("name",),
        name="name",
        id=lambda inputs, region: str(inputs["name"]),
        check=_check_alarm,
        outputs=_alarm,
    ),
)
