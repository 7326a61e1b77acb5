"""FSx and EFS: what finding and ending a cluster's file systems needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.refusal import AwsError
from clusterctl_rehearsal.region.types.network import EFS, LUSTRE, MOUNT_TARGET


def _lustre_views(call: Call) -> dict[str, Any]:
    wanted = call.parameters.get("FileSystemIds") or []
    rows = [row for row in call.records(LUSTRE) if not wanted or row.id in wanted]
    _check_found(wanted, rows)
    return {"FileSystems": [_lustre_view(call, row) for row in rows]}


def _lustre_view(call: Call, row: Record) -> dict[str, Any]:
    throughput = row.inputs.get("perUnitStorageThroughput")
    return {
        "OwnerId": ACCOUNT_ID,
        "CreationTime": row.created_at,
        "FileSystemId": row.id,
        "FileSystemType": "LUSTRE",
        "Lifecycle": "CREATING" if _is_creating(call, row) else "AVAILABLE",
        "StorageCapacity": row.inputs["storageCapacity"],
        "DNSName": row.outputs["dnsName"],
        "ResourceARN": row.outputs["arn"],
        "Tags": tag_list(row.tags),
        "LustreConfiguration": {
            "DeploymentType": row.inputs["deploymentType"],
            "MountName": row.outputs["mountName"],
            **({} if throughput is None else {"PerUnitStorageThroughput": throughput}),
        },
    }


def _end_lustre(call: Call) -> dict[str, Any]:
    call.region.delete(LUSTRE, call.parameters["FileSystemId"])
    return {"FileSystemId": call.parameters["FileSystemId"], "Lifecycle": "DELETING"}


def _efs_views(call: Call) -> dict[str, Any]:
    wanted = [call.parameters["FileSystemId"]] if "FileSystemId" in call.parameters else []
    rows = [row for row in call.records(EFS) if not wanted or row.id in wanted]
    _check_found(wanted, rows)
    return {"FileSystems": [_efs_view(call, row) for row in rows]}


def _efs_view(call: Call, row: Record) -> dict[str, Any]:
    return {
        "OwnerId": ACCOUNT_ID,
        "CreationToken": row.outputs["creationToken"],
        "CreationTime": row.created_at,
        "FileSystemId": row.id,
        "LifeCycleState": "creating" if _is_creating(call, row) else "available",
        "NumberOfMountTargets": len(list(_targets(call, row.id))),
        "SizeInBytes": {"Value": 6144},
        "PerformanceMode": row.outputs["performanceMode"],
        "ThroughputMode": row.inputs["throughputMode"],
        "Tags": tag_list(row.tags),
    }


def _target_views(call: Call) -> dict[str, Any]:
    wanted = call.parameters.get("FileSystemId")
    if wanted is None:
        raise AwsError("BadRequest", "FileSystemId, MountTargetId or AccessPointId is needed")
    _check_found([wanted], [row for row in call.records(EFS) if row.id == wanted])
    return {
        "MountTargets": [
            {
                "MountTargetId": row.id,
                "FileSystemId": wanted,
                "SubnetId": row.inputs["subnetId"],
                "LifeCycleState": "available",
                "IpAddress": row.outputs["ipAddress"],
            }
            for row in _targets(call, wanted)
        ]
    }


def _end(token: str) -> Handler:
    def handler(call: Call) -> dict[str, Any]:
        call.region.delete(token, call.parameters["id"])
        return {}

    return handler


def _targets(call: Call, file_system: str) -> Iterator[Record]:
    return (row for row in call.records(MOUNT_TARGET) if row.inputs["fileSystemId"] == file_system)


def _is_creating(call: Call, row: Record) -> bool:
    return call.region.clock() < float(row.facts["available_at"])


def _check_found(wanted: list[str], rows: list[Record]) -> None:
    missing = set(wanted) - {row.id for row in rows}
    if missing:
        raise AwsError("FileSystemNotFound", f"File system '{missing.pop()}' does not exist.", status=404)


FSX: dict[str, Handler] = {"DescribeFileSystems": _lustre_views, "DeleteFileSystem": _end_lustre}
_EFS_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"/2015-02-01/file-systems/?", _efs_views),
    ("DELETE", r"/2015-02-01/file-systems/(?P<id>[^/]+)", _end(EFS)),
    ("GET", r"/2015-02-01/mount-targets/?", _target_views),
    ("DELETE", r"/2015-02-01/mount-targets/(?P<id>[^/]+)", _end(MOUNT_TARGET)),
)


def efs_route(method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
    """Who answers a request, and what its path says; EFS speaks REST."""
    for wanted, pattern, handler in _EFS_ROUTES:
        found = re.fullmatch(pattern, path)
        if wanted == method and found is not None:
            return handler, found.groupdict()
    return None
