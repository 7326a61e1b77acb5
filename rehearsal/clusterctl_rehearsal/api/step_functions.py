"""Step Functions: making, starting, finding and ending state machines."""

from __future__ import annotations

from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.making import made, named_tags, retag
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.deadline import STATE_MACHINE
from clusterctl_rehearsal.states.definition import check_definition
from clusterctl_rehearsal.states.ended_executions import ExecutionRow
from clusterctl_rehearsal.states.executions import Executions


def step_functions(executions: Executions) -> dict[str, Handler]:
    """The handlers by operation."""

    def start(call: Call) -> dict[str, Any]:
        given, name = call.parameters.get("input") or "{}", call.parameters.get("name")
        row = executions.start(_machine(call), given, name=name)
        return {"executionArn": row.arn, "startDate": row.started_at}

    def describe(call: Call) -> dict[str, Any]:
        arn = call.parameters["executionArn"]
        row = executions.find(arn)
        if row is None:
            raise AwsError("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        return _execution(row)

    def of_machine(call: Call) -> dict[str, Any]:
        wanted, limit = call.parameters.get("statusFilter"), _page_size(call)
        newest_first = executions.of_machine(_machine(call).id)[::-1]
        rows = [row for row in newest_first if wanted in (None, row.status)][:limit]
        shown = ("executionArn", "stateMachineArn", "name", "status", "startDate", "stopDate")
        return {"executions": [{key: row[key] for key in shown if key in row} for row in map(_execution, rows)]}

    return {
        "StartExecution": start,
        "ListExecutions": of_machine,
        "DescribeExecution": describe,
        "CreateStateMachine": _create,
        "DescribeStateMachine": _describe,
        "ListStateMachines": _machines,
        "ListTagsForResource": _tags,
        "TagResource": _tag,
        "UntagResource": _untag,
        "DeleteStateMachine": _delete,
        "UpdateStateMachine": _update,
        "ListStateMachineVersions": lambda call: {"stateMachineVersions": []},  # nobody publishes any here
        "ValidateStateMachineDefinition": _validate,
    }


def _create(call: Call) -> dict[str, Any]:
    asked = call.parameters
    inputs = {
        "name": asked["name"],
        "definition": asked["definition"],
        "roleArn": asked["roleArn"],
        "type": asked.get("type"),
        "tags": named_tags(asked.get("tags"), "key", "value"),
    }
    row = made(call, STATE_MACHINE, inputs)
    return {"stateMachineArn": row.id, "creationDate": row.created_at}


def _update(call: Call) -> dict[str, Any]:
    row, asked = _machine(call), call.parameters
    given = {key: asked[key] for key in ("definition", "roleArn") if key in asked}
    call.region.update(STATE_MACHINE, row.id, {**row.inputs, **given})
    return {"updateDate": call.region.clock(), "revisionId": f"{row.id.rpartition(':')[2]}-changed"}


def _validate(call: Call) -> dict[str, Any]:
    """Checks a definition as far as the stand-in reads it. The provider makes this call before CreateStateMachine."""
    try:
        check_definition(str(call.parameters["definition"]))
    except (AwsError, StandInRefusal) as e:
        row = {"severity": "ERROR", "code": "SCHEMA_VALIDATION_FAILED", "message": str(e)}
        return {"result": "FAIL", "diagnostics": [row]}
    return {"result": "OK", "diagnostics": []}


def _describe(call: Call) -> dict[str, Any]:
    row = _machine(call)
    return {
        "stateMachineArn": row.id,
        "name": row.inputs["name"],
        "status": "ACTIVE",
        "definition": row.inputs["definition"],
        "roleArn": row.inputs["roleArn"],
        "type": row.inputs["type"],
        "creationDate": row.created_at,
    }


def _page_size(call: Call) -> int:
    """The page size asked for, 1 to 1000; 0 and none mean 100 (Step Functions API, ListExecutions). Raises AwsError."""
    asked = call.parameters.get("maxResults") or 100
    if type(asked) is not int or not 1 <= asked <= 1000:
        raise AwsError("ValidationException", f"Value '{asked}' at 'maxResults' must be between 0 and 1000")
    return asked


def _tagged(call: Call) -> Record:
    """The state machine that a call about tags names. Raises those calls' error (Step Functions API, TagResource)."""
    arn = call.parameters["resourceArn"]
    found = call.find(STATE_MACHINE, arn)
    if found is None:
        raise AwsError("ResourceNotFound", f"Resource not found: '{arn}'")
    return found


def _tags(call: Call) -> dict[str, Any]:
    row = _tagged(call)
    return {"tags": [{"key": key, "value": value} for key, value in row.tags.items()]}


def _tag(call: Call) -> dict[str, Any]:
    row = _tagged(call)
    retag(call, row, {**row.tags, **named_tags(call.parameters["tags"], "key", "value")})
    return {}


def _untag(call: Call) -> dict[str, Any]:
    row = _tagged(call)
    retag(call, row, {key: value for key, value in row.tags.items() if key not in call.parameters["tagKeys"]})
    return {}


def _machines(call: Call) -> dict[str, Any]:
    rows = [
        {
            "stateMachineArn": row.id,
            "name": row.inputs["name"],
            "type": row.inputs["type"],
            "creationDate": row.created_at,
        }
        for row in call.records(STATE_MACHINE)
    ]
    return {"stateMachines": rows}


def _delete(call: Call) -> dict[str, Any]:
    arn = call.parameters["stateMachineArn"]
    if call.find(STATE_MACHINE, arn) is not None:
        call.region.delete(STATE_MACHINE, arn)
    return {}  # AWS answers this for a machine that does not exist, too


def _machine(call: Call) -> Record:
    arn = call.parameters["stateMachineArn"]
    found = call.find(STATE_MACHINE, arn)
    if found is None:
        raise AwsError("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")
    return found


def _execution(row: ExecutionRow) -> dict[str, Any]:
    shown = {
        "executionArn": row.arn,
        "stateMachineArn": row.machine_arn,
        "name": row.arn.rpartition(":")[2],
        "status": row.status,
        "startDate": row.started_at,
        "stopDate": row.ended_at,
        "input": row.given,
        "output": row.output,
        "error": row.error,
        "cause": row.cause,
    }
    return {key: value for key, value in shown.items() if value is not None}
