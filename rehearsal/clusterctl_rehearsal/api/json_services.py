"""STS, Systems Manager, Service Quotas and the tagging API, as far as clusterctl asks them."""

from __future__ import annotations

from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.lookups import CALLER_ARN, CALLER_ID, parameter_value
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record


def _caller_identity(call: Call) -> dict[str, Any]:
    return {"Account": ACCOUNT_ID, "Arn": CALLER_ARN, "UserId": CALLER_ID}


def _parameter(call: Call) -> dict[str, Any]:
    name = call.parameters["Name"]
    value = parameter_value(name, call.region.settings(), call.region.catalog)
    arn = f"arn:aws:ssm:{call.region_name}::parameter{name}"
    return {"Parameter": {"Name": name, "Type": "String", "Value": value, "Version": 1, "ARN": arn}}


def _service_quota(call: Call) -> dict[str, Any]:
    """A quota from the settings, where one number stands for the on-demand quotas of all instance families.

    Raises AWS's error for a quota without a value.
    """
    code = call.parameters["QuotaCode"]
    limit = call.region.settings().quotas.get(_QUOTAS.get(code, ""))
    if limit is None:
        raise AwsError("NoSuchResourceException", f"The request failed because the specified quota {code} has no value")
    return {"Quota": {"ServiceCode": call.parameters["ServiceCode"], "QuotaCode": code, "Value": float(limit)}}


def _resources(call: Call) -> dict[str, Any]:
    kinds = call.parameters.get("ResourceTypeFilters") or []
    rows = [
        {"ResourceARN": row.outputs["arn"], "Tags": tag_list(row.tags)}
        for row in call.region.store.live()
        if row.outputs.get("arn") and row.tags and row.region == call.region_name
        if all(_has(row, wanted) for wanted in call.parameters.get("TagFilters") or [])
        if not kinds or any(_is_kind(row.outputs["arn"], kind) for kind in kinds)
    ]
    return {"PaginationToken": "", "ResourceTagMappingList": rows}


def _has(row: Record, wanted: dict[str, Any]) -> bool:
    value = row.tags.get(wanted["Key"])
    return value is not None and (not wanted.get("Values") or value in wanted["Values"])


def _is_kind(arn: str, kind: str) -> bool:
    service, _, resource = kind.partition(":")
    parts = arn.split(":")
    return parts[2] == service and (not resource or parts[5].split("/")[0] == resource)


_QUOTAS = {
    **dict.fromkeys(("L-417A185B", "L-DB2E81BA", "L-1216C47A"), "vcpus"),
    "L-0263D0A3": "addresses",
    "L-F678F1CE": "vpcs",
}
"""Code in Service Quotas → name of the quota in the region's settings."""
STS: dict[str, Handler] = {"GetCallerIdentity": _caller_identity}
SERVICE_QUOTAS: dict[str, Handler] = {"GetServiceQuota": _service_quota}
SSM: dict[str, Handler] = {"GetParameter": _parameter}
TAGGING: dict[str, Handler] = {"GetResources": _resources}
