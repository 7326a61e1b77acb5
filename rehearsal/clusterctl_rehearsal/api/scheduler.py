"""EventBridge Scheduler: what finding and ending a cluster's schedule needs."""

from __future__ import annotations

import re
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler
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


def _delete(call: Call) -> dict[str, Any]:
    call.region.delete(SCHEDULE, f"{call.parameters.get('groupName', 'default')}/{call.parameters['name']}")
    return {}


_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"/schedules/?", _schedules),
    ("DELETE", r"/schedules/(?P<name>[^/]+)", _delete),
)


def scheduler_route(method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
    """Who answers a request, and what its path says; the Scheduler speaks REST."""
    for wanted, pattern, handler in _ROUTES:
        found = re.fullmatch(pattern, path)
        if wanted == method and found is not None:
            return handler, found.groupdict()
    return None
