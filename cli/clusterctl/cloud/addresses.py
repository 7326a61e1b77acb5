"""Elastic IPs: how many an account may have in a region, and whether that is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # a name that the service takes and its model does not list

from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.quota import raise_quota
from clusterctl.cloud.refusal import aws_errors

LIMIT_ATTRIBUTE: Any = "vpc-max-elastic-ips"
"""EC2 API, DescribeAccountAttributes (2026-11-21)."""
QUOTA_CODE = "L-0263D0A3"
"""Of `EC2-VPC Elastic IPs` in Service Quotas (2026-11-21)."""


@dataclass(frozen=True, kw_only=True)
class AddressRoom:
    """Elastic IPs of an account in one region."""

    limit: int
    taken: int
    """By others than the cluster: its own are kept, or ended by the repair before a change."""


def address_room(clients: Clients, *, own_id: str | None) -> AddressRoom:
    """What the account may have, and what others than the cluster with this id have. Raises CloudError."""
    with aws_errors("asking how many elastic IPs there may be"):
        rows = clients.ec2.describe_account_attributes(AttributeNames=[LIMIT_ATTRIBUTE])["AccountAttributes"]
        values = [value["AttributeValue"] for row in rows for value in row["AttributeValues"]]
        addresses = clients.ec2.describe_addresses()["Addresses"]
    if not values or not values[0].isdigit():
        raise CloudError(f"asking how many elastic IPs there may be: AWS said {values!r}", code="NoAnswer")
    others = [row for row in addresses if own_id is None or tags_of(row.get("Tags")).get(ID_TAG) != own_id]
    return AddressRoom(limit=int(values[0]), taken=len(others))


def addresses_wanted(cluster_plan: ClusterPlan) -> int:
    """How many elastic IPs the cluster has: one a node, or the one of the way out where nodes have none."""
    wanted = {"elastic": len(cluster_plan.slots), "none": 1, "automatic": 0}
    return wanted[cluster_plan.network.public_addresses]


def refuse_without_room(room: AddressRoom, wanted: int, *, region: str, is_rehearsal: bool) -> None:
    """Raises CloudError, with the command that asks AWS for more, when `wanted` do not fit."""
    needed = room.taken + wanted
    if needed <= room.limit:
        return
    raise CloudError(
        f"AddressLimitExceeded: the cluster needs {wanted} elastic IPs, and others have {room.taken} of the "
        f"{room.limit} that this account may have in {region}: nothing was made. access: {{mode: private}} needs one "
        "for all nodes",
        code="AddressLimitExceeded",
        hint=raise_quota("addresses", QUOTA_CODE, needed, region=region, is_rehearsal=is_rehearsal),
    )
