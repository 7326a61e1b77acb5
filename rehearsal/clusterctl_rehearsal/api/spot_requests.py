"""Spot requests: each spot machine has one, for as long as the region keeps the machine's record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.api.ec2_attributes import listed
from clusterctl_rehearsal.api.making import refuse_dry_run
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.instances import SPOT_INTERRUPTED, USER_INITIATED, launched_at
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.spot_notices import taken_back_at
from clusterctl_rehearsal.region.types.network import INSTANCE

NOT_FOUND = "InvalidSpotInstanceRequestID.NotFound"


def _requests(call: Call) -> Iterator[dict[str, Any]]:
    refuse_dry_run(call)
    for row in call.records(INSTANCE):
        if row.facts.get("spot_request"):
            yield {
                "SpotInstanceRequestId": row.facts["spot_request"],
                "InstanceId": row.id,
                "State": _state(row),
                "Status": {"Code": _status(row)},
                "Type": "one-time",
                "ProductDescription": "Linux/UNIX",
                "LaunchedAvailabilityZone": row.facts["zone"],
                "CreateTime": launched_at(row),
                "Tags": tag_list({}),
            }


def _state(row: Record) -> str:
    if row.facts.get("is_request_cancelled"):
        return "cancelled"
    return "active" if row.is_live else "closed"


def _status(row: Record) -> str:
    """The status code (EC2 User Guide, "Get the status of a Spot Instance request"; 2026-11-26).

    AWS takes machines back for lack of capacity here: the region's spot price does not move.
    """
    if not row.is_live:
        is_taken_back = (row.facts.get("reason") or USER_INITIATED)[0] == SPOT_INTERRUPTED[0]
        return "instance-terminated-no-capacity" if is_taken_back else "instance-terminated-by-user"
    if taken_back_at(row) is not None:
        return "marked-for-termination"
    return "request-canceled-and-instance-running" if row.facts.get("is_request_cancelled") else "fulfilled"


def _cancel(call: Call) -> dict[str, Any]:
    """The machine runs on: only its request is over (EC2 API, CancelSpotInstanceRequests; 2026-11-26)."""
    refuse_dry_run(call)
    wanted = call.parameters.get("SpotInstanceRequestIds") or []
    rows = {row.facts.get("spot_request"): row for row in call.records(INSTANCE)}
    for id in wanted:
        if id not in rows:
            raise AwsError(NOT_FOUND, f"The spot instance request ID '{id}' does not exist")
    for id in wanted:
        call.region.store.put(rows[id].changed(is_request_cancelled=True))
    return {"CancelledSpotInstanceRequests": [{"SpotInstanceRequestId": id, "State": "cancelled"} for id in wanted]}


SPOT_REQUESTS: dict[str, Handler] = {
    "DescribeSpotInstanceRequests": listed(
        *("SpotInstanceRequests", "SpotInstanceRequestIds", "SpotInstanceRequestId", _requests), {}, NOT_FOUND
    ),
    "CancelSpotInstanceRequests": _cancel,
}
