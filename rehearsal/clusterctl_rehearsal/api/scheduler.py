"""EventBridge Scheduler: making, finding and ending one-time schedules."""

from __future__ import annotations

import re
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.making import made
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.deadline import SCHEDULE


def _schedules(call: Call) -> dict[str, Any]:
    prefix = call.parameters.get("NamePrefix", "")
    rows = [
        {
            "Arn": row.outputs["arn"],
            "Name": row.inputs["name"],
            "GroupName": row.inputs["groupName"],
            "State": row.inputs["state"],
            "CreationDate": row.created_at,
            "Target": {"Arn": row.inputs["target"]["arn"]},
        }
        for row in call.records(SCHEDULE)
        if str(row.inputs["name"]).startswith(prefix)
    ]
    return {"Schedules": rows}


def _create(call: Call) -> dict[str, Any]:
    return {"ScheduleArn": made(call, SCHEDULE, _inputs(call), has_tags=False).outputs["arn"]}


def _update(call: Call) -> dict[str, Any]:
    """Replaces the whole schedule: an omitted field gets its default (Scheduler API, UpdateSchedule;
    2026-11-26).
    """
    row = _named(call, str(call.parameters.get("GroupName", "default")))
    return {"ScheduleArn": call.region.update(SCHEDULE, row.id, _inputs(call)).outputs["arn"]}


def _inputs(call: Call) -> dict[str, Any]:
    asked = call.parameters
    target, window = asked.get("Target") or {}, asked.get("FlexibleTimeWindow") or {}
    return {
        "name": asked["name"],
        "groupName": asked.get("GroupName"),
        "scheduleExpression": asked.get("ScheduleExpression"),
        "scheduleExpressionTimezone": asked.get("ScheduleExpressionTimezone"),
        "state": asked.get("State"),
        "description": asked.get("Description"),
        "actionAfterCompletion": asked.get("ActionAfterCompletion"),
        "flexibleTimeWindow": {"mode": window.get("Mode")},
        "target": {"arn": target.get("Arn"), "roleArn": target.get("RoleArn"), "input": target.get("Input")},
    }


def _named(call: Call, group: str) -> Record:
    name = call.parameters["name"]
    row = call.region.store.get(SCHEDULE, f"{group}/{name}")
    if row is None:
        raise AwsError("ResourceNotFoundException", f"Schedule {name} does not exist.", status=404)
    return row


def _get(call: Call) -> dict[str, Any]:
    group, name = call.parameters.get("groupName", "default"), call.parameters["name"]
    row = _named(call, group)
    inputs, target = row.inputs, row.inputs["target"]
    return {
        "Arn": row.outputs["arn"],
        "Name": name,
        "GroupName": group,
        "State": inputs["state"],
        "CreationDate": row.created_at,
        "ScheduleExpression": inputs["scheduleExpression"],
        "ScheduleExpressionTimezone": inputs["scheduleExpressionTimezone"],
        "ActionAfterCompletion": inputs["actionAfterCompletion"],
        "FlexibleTimeWindow": {"Mode": inputs["flexibleTimeWindow"]["mode"]},
        "Target": {"Arn": target["arn"], "RoleArn": target["roleArn"], "Input": target.get("input") or ""},
    }


def _delete(call: Call) -> dict[str, Any]:
    call.region.delete(SCHEDULE, f"{call.parameters.get('groupName', 'default')}/{call.parameters['name']}")
    return {}


_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"/schedules/?", _schedules),
    ("POST", r"/schedules/(?P<name>[^/]+)", _create),
    ("GET", r"/schedules/(?P<name>[^/]+)", _get),
    ("PUT", r"/schedules/(?P<name>[^/]+)", _update),
    ("DELETE", r"/schedules/(?P<name>[^/]+)", _delete),
)


def scheduler_route(method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
    """The handler of a REST request to the Scheduler, and the parameters in its path; None if it is not known."""
    for wanted, pattern, handler in _ROUTES:
        found = re.fullmatch(pattern, path)
        if wanted == method and found is not None:
            return handler, found.groupdict()
    return None
