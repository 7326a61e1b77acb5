"""DescribeInstanceTopology: simulated racks, as many as rehearsal.yaml says; a machine's address decides its rack."""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.api.call import Call
from clusterctl_rehearsal.api.ec2_describe import check_all_found
from clusterctl_rehearsal.api.filters import page
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.types.network import INSTANCE

IDS_LIMIT = 100
DEFAULT_PAGE = 20
LEVELS = {
    3: ("p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6e-gb200", "g6e", "g7e", "trn1", "trn1n", "trn2"),
    4: ("p6-b200", "p6-b300"),
}
"""Number of network nodes that AWS shows → instance families; for others it shows none.

Source: "Prerequisites for Amazon EC2 instance topology", EC2 User Guide, checked 2026-11.
"""
RACKS_PER_ROW = 4


def describe_topology(call: Call) -> dict[str, Any]:
    """The answer to DescribeInstanceTopology."""
    ids = call.parameters.get("InstanceIds") or []
    if len(ids) > IDS_LIMIT:
        raise AwsError("InvalidParameterValue", f"You can specify at most {IDS_LIMIT} instance IDs")
    if ids and call.parameters.get("MaxResults"):
        raise AwsError("InvalidParameterCombination", "MaxResults cannot be used with instance IDs")
    rows = [row for row in call.records(INSTANCE) if row.is_live and (not ids or row.id in ids)]
    check_all_found(INSTANCE, ids, {row.id for row in rows})
    size = call.parameters.get("MaxResults") or (len(ids) or DEFAULT_PAGE)
    shown, rest = page([_view(call, row) for row in rows], {**call.parameters, "MaxResults": size})
    return {"Instances": shown, "NextToken": rest}


def _view(call: Call, row: Record) -> dict[str, Any]:
    facts = row.facts
    return {
        "InstanceId": row.id,
        "InstanceType": facts["instance_type"],
        "GroupName": facts["placement_group"] or None,
        "AvailabilityZone": facts["zone"],
        "NetworkNodes": _nodes(row, call.region.settings().racks) if row.state == "running" else None,
    }


def _nodes(row: Record, racks: int) -> list[str] | None:
    """A machine's network nodes from the top down; as on AWS, their names are hashes that differ between accounts."""
    family = str(row.facts["instance_type"]).partition(".")[0]
    levels = next((levels for levels, families in LEVELS.items() if family in families), 0)
    if levels == 0:
        return None
    rack = int(IPv4Address(row.facts["interfaces"][0]["ip"])) % racks
    places = ["hall", f"row {rack // RACKS_PER_ROW}", f"rack {rack}"]
    return [_name(place) for place in ["building"] * (levels - len(places)) + places]


def _name(place: str) -> str:
    return "nn-" + hashlib.sha256(f"{ACCOUNT_ID}/{place}".encode()).hexdigest()[:17]
