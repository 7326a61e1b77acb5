"""vCPUs of machines on demand: how many an account may have in a region, and whether a cluster fits at all."""

from __future__ import annotations

from itertools import takewhile

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.errors import CloudError

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.quota import raise_quota

QUOTA_CODES = {
    **dict.fromkeys(("g", "gr", "vt"), "L-DB2E81BA"),
    "p": "L-417A185B",
    **dict.fromkeys(("a", "c", "d", "h", "i", "m", "r", "t", "z"), "L-1216C47A"),
}
"""Letters of a family → its quota in Service Quotas (EC2 User Guide, "On-Demand Instance quotas"; 2026-11-22)."""


def quota_code(family: str) -> str | None:
    """`p5` → L-417A185B; None for a family that is in no quota known here."""
    return QUOTA_CODES.get("".join(takewhile(str.isalpha, family)))


def vcpu_limit(clients: Clients, family: str) -> int | None:
    """How many vCPUs the account may have of the family and its like; None where AWS does not say it.

    That is no failure: whoever lacks servicequotas:GetServiceQuota has AWS's own refusal, later.
    """
    code = quota_code(family)
    if code is None:
        return None
    try:
        answer = clients.service_quotas.get_service_quota(ServiceCode="ec2", QuotaCode=code)
    except (BotoCoreError, ClientError, ResponseParserError):
        return None
    value = answer.get("Quota", {}).get("Value")
    return None if value is None else int(value)


def refuse_beyond(limit: int | None, row: InstanceType, nodes: int, *, region: str, is_rehearsal: bool) -> None:
    """Raises CloudError when the nodes alone are more than the account may have; what else runs, AWS counts itself."""
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
