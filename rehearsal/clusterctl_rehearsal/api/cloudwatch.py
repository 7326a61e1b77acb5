"""CloudWatch: the calls that make, list, tag and delete alarms."""

from __future__ import annotations

from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.api.making import made, named_tags, retag
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.failure_alarms import on_since
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.deadline import ALARM


def _put(call: Call) -> dict[str, Any]:
    """Makes an alarm, or changes the one that has this name already."""
    asked = {key: value for key, value in call.parameters.items() if key not in ("Tags", "Dimensions", "AlarmName")}
    inputs = {key[:1].lower() + key[1:]: value for key, value in asked.items()}
    inputs["name"] = call.parameters["AlarmName"]
    inputs["dimensions"] = named_tags(call.parameters.get("Dimensions"), "Name", "Value")
    if call.region.store.get(ALARM, inputs["name"]) is not None:
        call.region.update(ALARM, inputs["name"], inputs)
    else:
        made(call, ALARM, {**inputs, "tags": named_tags(call.parameters.get("Tags"))})
    return {}


def _by_arn(call: Call) -> Record:
    arn = call.parameters["ResourceARN"]
    found = next((row for row in call.records(ALARM) if row.outputs["arn"] == arn), None)
    if found is None:
        raise AwsError("ResourceNotFoundException", f"Resource {arn} does not exist", status=404)
    return found


def _tags(call: Call) -> dict[str, Any]:
    return {"Tags": tag_list(_by_arn(call).tags)}


def _tag(call: Call) -> dict[str, Any]:
    row = _by_arn(call)
    retag(call, row, {**row.tags, **named_tags(call.parameters["Tags"])})
    return {}


def _untag(call: Call) -> dict[str, Any]:
    row, gone = _by_arn(call), call.parameters["TagKeys"]
    retag(call, row, {key: value for key, value in row.tags.items() if key not in gone})
    return {}


def _delete(call: Call) -> dict[str, Any]:
    for name in call.parameters["AlarmNames"]:
        if call.region.store.get(ALARM, name) is None:
            raise AwsError("ResourceNotFound", f"Alarm {name} does not exist", status=404)
        call.region.delete(ALARM, name)
    return {}


def _describe(call: Call) -> dict[str, Any]:
    prefix, names = call.parameters.get("AlarmNamePrefix", ""), call.parameters.get("AlarmNames")
    rows = [row for row in call.records(ALARM) if str(row.inputs["name"]).startswith(prefix)]
    rows = [row for row in rows if names is None or row.inputs["name"] in names]
    return {"MetricAlarms": [_alarm(row) for row in rows], "CompositeAlarms": []}


def _alarm(row: Record) -> dict[str, Any]:
    """The alarm as DescribeAlarms shows it."""
    since = on_since(row)
    return {
        "AlarmName": row.inputs["name"],
        "AlarmArn": row.outputs["arn"],
        "AlarmDescription": row.inputs.get("alarmDescription"),
        "Namespace": row.inputs["namespace"],
        "MetricName": row.inputs["metricName"],
        "StateValue": "INSUFFICIENT_DATA" if since is None else "ALARM",
        "StateUpdatedTimestamp": row.created_at if since is None else since,
    }


CLOUDWATCH: dict[str, Handler] = {
    "PutMetricAlarm": _put,
    "DescribeAlarms": _describe,
    "DeleteAlarms": _delete,
    "ListTagsForResource": _tags,
    "TagResource": _tag,
    "UntagResource": _untag,
}
