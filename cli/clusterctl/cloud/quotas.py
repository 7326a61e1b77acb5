"""What an account may have in a region (vCPUs on demand, elastic IPs, VPCs), and whether a cluster fits at all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any  # a name that the service takes and its model does not list

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.refusal import aws_errors

QUOTA_CODES = {
    **dict.fromkeys(("g", "gr", "vt"), "L-DB2E81BA"),
    "p": "L-417A185B",
    **dict.fromkeys(("a", "c", "d", "h", "i", "m", "r", "t", "z"), "L-1216C47A"),
}
"""Letters of a family → its quota in Service Quotas (EC2 User Guide, "On-Demand Instance quotas"; 2026-11-22)."""


def quota_code(family: str) -> str | None:
    """The quota that a family counts for, such as L-417A185B for `p5`; None if none is known here."""
    return QUOTA_CODES.get("".join(takewhile(str.isalpha, family)))


def vcpu_limit(clients: Clients, family: str) -> int | None:
    """How many vCPUs the account may have in the families of this one's quota; None where AWS does not say it.

    That is not an error: a person may lack the right servicequotas:GetServiceQuota, and later AWS itself refuses what
    is too much.
    """
    code = quota_code(family)
    return None if code is None else quota(clients, "ec2", code)


def quota(clients: Clients, service: str, code: str) -> int | None:
    """What Service Quotas says of a quota such as L-417A185B; None where it does not say it."""
    try:
        answer = clients.service_quotas.get_service_quota(ServiceCode=service, QuotaCode=code)
    except (BotoCoreError, ClientError, ResponseParserError):
        return None
    value = answer.get("Quota", {}).get("Value")
    return None if value is None else int(value)


def refuse_beyond(limit: int | None, row: InstanceType, nodes: int, *, region: str, is_rehearsal: bool) -> None:
    """Raises CloudError if the nodes alone are more than the account may have; AWS itself counts what else runs."""
    wanted = nodes * row.vcpus
    if limit is None or wanted <= limit:
        return
    code = quota_code(row.family)
    raise CloudError(
        f"VcpuLimitExceeded: {nodes} × {row.name} are {wanted:,} vCPUs, and this account may have {limit:,} of that "
        f"family on demand in {region} (quota {code}): nothing was changed. AWS raises a quota on request",
        code="VcpuLimitExceeded",
        hint=raise_quota("vcpus", code, wanted, region=region, is_rehearsal=is_rehearsal),
    )


LIMIT_ATTRIBUTE: Any = "vpc-max-elastic-ips"
"""EC2 API, DescribeAccountAttributes (2026-11-21)."""
QUOTA_CODE = "L-0263D0A3"
"""The quota `EC2-VPC Elastic IPs` in Service Quotas (2026-11-21)."""
VPC_QUOTA_CODE = "L-F678F1CE"
"""The quota `VPCs per Region` in Service Quotas: from other projects' code, not verified with AWS (2026-11-26)."""


@dataclass(frozen=True, kw_only=True)
class AddressQuota:
    """Elastic IPs of an account in one region."""

    limit: int
    taken: int
    """How many do not belong to the cluster: its own are kept, or ended by the repair before a change."""


def address_quota(clients: Clients, *, own_id: str | None) -> AddressQuota:
    """What the account may have, and what others than the cluster with this id have. Raises CloudError."""
    limit = quota(clients, "ec2", QUOTA_CODE)
    with aws_errors("asking how many elastic IPs there may be"):
        addresses = clients.ec2.describe_addresses()["Addresses"]
    others = [row for row in addresses if own_id is None or tags_of(row.get("Tags")).get(ID_TAG) != own_id]
    return AddressQuota(limit=_old_limit(clients) if limit is None else limit, taken=len(others))


def _old_limit(clients: Clients) -> int:
    """The account attribute that is older than Service Quotas, for people without the right to ask Service Quotas.
    Raises CloudError.
    """
    with aws_errors("asking how many elastic IPs there may be"):
        rows = clients.ec2.describe_account_attributes(AttributeNames=[LIMIT_ATTRIBUTE])["AccountAttributes"]
        values = [value["AttributeValue"] for row in rows for value in row["AttributeValues"]]
    if not values or not values[0].isdigit():
        raise CloudError(f"asking how many elastic IPs there may be: AWS said {values!r}", code="NoAnswer")
    return int(values[0])


def addresses_wanted(cluster_plan: ClusterPlan) -> int:
    """How many elastic IPs the cluster needs: one for each node, or one for the NAT gateway of private nodes.

    None for addresses that AWS gives by itself, and none in an adopted network, whose way out is not the cluster's.
    """
    network = cluster_plan.network
    if network.public_addresses == "none":
        return 0 if network.adopted_vpc_id is not None else 1
    return len(cluster_plan.slots) if network.public_addresses == "elastic" else 0


def refuse_addresses_beyond(addresses: AddressQuota, wanted: int, *, region: str, is_rehearsal: bool) -> None:
    """Raises CloudError, with the command that asks AWS for more, when `wanted` do not fit."""
    needed = addresses.taken + wanted
    if needed <= addresses.limit:
        return
    raise CloudError(
        f"AddressLimitExceeded: the cluster needs {wanted} elastic IPs, and others have {addresses.taken} of the "
        f"{addresses.limit} that this account may have in {region}: nothing was made. access: {{mode: private}} needs "
        "one for all nodes",
        code="AddressLimitExceeded",
        hint=raise_quota("addresses", QUOTA_CODE, needed, region=region, is_rehearsal=is_rehearsal),
    )


def raise_quota(
    name: str, code: str | None, wanted: int, *, region: str, is_rehearsal: bool, service: str = "ec2"
) -> str:
    """The command that asks for a quota of at least `wanted`, or that lists the service's quotas if `code` is None.

    `name`: what the rehearsed region calls the quota; `code`: what Service Quotas calls it, such as L-417A185B.
    """
    if is_rehearsal:
        return f"clusterctl rehearse fault quota {name}={wanted}"
    if code is None:
        return f"aws service-quotas list-service-quotas --region {region} --service-code {service} --output table"
    return (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {service} "
        f"--quota-code {code} --desired-value {wanted}"
    )
