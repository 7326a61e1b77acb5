"""FSx and EFS: making, finding and ending file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.api.making import living, made, named_tags, retag
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.types.network import EFS, LUSTRE, LUSTRE_LINK, MOUNT_TARGET


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


def _create_lustre(call: Call) -> dict[str, Any]:
    """Makes a Lustre file system and answers at once; its creation goes on for a while."""
    asked, settings = call.parameters, call.parameters.get("LustreConfiguration") or {}
    if asked.get("FileSystemType") != "LUSTRE":
        raise AwsError("BadRequest", f"The stand-in makes no {asked.get('FileSystemType')} yet (AWS may).")
    inputs = {
        "storageCapacity": asked.get("StorageCapacity"),
        "storageType": asked.get("StorageType"),
        "subnetIds": (asked.get("SubnetIds") or [None])[0],
        "securityGroupIds": asked.get("SecurityGroupIds"),
        "deploymentType": settings.get("DeploymentType"),
        "perUnitStorageThroughput": settings.get("PerUnitStorageThroughput"),
        "dataCompressionType": settings.get("DataCompressionType"),
        "tags": named_tags(asked.get("Tags")),
    }
    return {"FileSystem": _lustre_view(call, made(call, LUSTRE, inputs, waits=False))}


def _by_arn(call: Call) -> Record:
    arn = call.parameters["ResourceARN"]
    known = (row for token in (LUSTRE, LUSTRE_LINK) for row in call.records(token))
    found = next((row for row in known if row.outputs["arn"] == arn), None)
    if found is None:
        raise AwsError("ResourceNotFound", f"Resource '{arn}' does not exist.")
    return found


def _tag_lustre(call: Call) -> dict[str, Any]:
    row = _by_arn(call)
    retag(call, row, {**row.tags, **named_tags(call.parameters["Tags"])})
    return {}


def _tags_of_lustre(call: Call) -> dict[str, Any]:
    return {"Tags": tag_list(_by_arn(call).tags)}


def _update_lustre(call: Call) -> dict[str, Any]:
    """Changes a file system's size and compression; nothing else can be changed."""
    id, settings = call.parameters["FileSystemId"], call.parameters.get("LustreConfiguration") or {}
    row = call.find(LUSTRE, id)
    _check_found([id], [] if row is None else [row])
    assert row is not None  # else refused above
    asked = {
        "storageCapacity": call.parameters.get("StorageCapacity"),
        "dataCompressionType": settings.get("DataCompressionType"),
    }
    given = {key: value for key, value in asked.items() if value is not None}
    return {"FileSystem": _lustre_view(call, call.region.update(LUSTRE, id, {**row.inputs, **given}))}


def _untag_lustre(call: Call) -> dict[str, Any]:
    row = _by_arn(call)
    retag(call, row, {key: value for key, value in row.tags.items() if key not in call.parameters["TagKeys"]})
    return {}


def _create_link(call: Call) -> dict[str, Any]:
    asked = call.parameters
    _check_found([asked["FileSystemId"]], [row for row in call.records(LUSTRE) if row.id == asked["FileSystemId"]])
    inputs = {
        "fileSystemId": asked["FileSystemId"],
        "fileSystemPath": asked.get("FileSystemPath") or "/",
        "dataRepositoryPath": asked["DataRepositoryPath"],
        "batchImportMetaDataOnCreate": asked.get("BatchImportMetaDataOnCreate"),
        "s3": _events_given(asked.get("S3")),
        "tags": named_tags(asked.get("Tags")),
    }
    return {"Association": _link_view(made(call, LUSTRE_LINK, inputs))}


def _link_views(call: Call) -> dict[str, Any]:
    wanted = call.parameters.get("AssociationIds") or []
    rows = [row for row in call.records(LUSTRE_LINK) if not wanted or row.id in wanted]
    for id in set(wanted) - {row.id for row in rows}:
        raise _no_link(id)
    for rule in call.parameters.get("Filters") or []:
        if rule.get("Name") == "file-system-id":
            rows = [row for row in rows if row.inputs["fileSystemId"] in rule["Values"]]
    return {"Associations": [_link_view(row) for row in rows]}


def _link_view(row: Record) -> dict[str, Any]:
    events = row.inputs.get("s3") or {}
    policies = {f"{key[0].upper()}{key[1:]}": {"Events": list(policy["events"])} for key, policy in events.items()}
    return {
        "AssociationId": row.id,
        "ResourceARN": row.outputs["arn"],
        "FileSystemId": row.inputs["fileSystemId"],
        "FileSystemPath": row.inputs["fileSystemPath"],
        "DataRepositoryPath": row.inputs["dataRepositoryPath"],
        "BatchImportMetaDataOnCreate": bool(row.inputs.get("batchImportMetaDataOnCreate")),
        "ImportedFileChunkSize": row.outputs["importedFileChunkSize"],
        "Lifecycle": "AVAILABLE",
        "S3": policies,
        "Tags": tag_list(row.tags),
        "CreationTime": row.created_at,
    }


def _update_link(call: Call) -> dict[str, Any]:
    """Changes what an association imports and exports; its two paths never change."""
    row = _found_link(call)
    events = {**(row.inputs.get("s3") or {}), **_events_given(call.parameters.get("S3"))}
    return {"Association": _link_view(call.region.update(LUSTRE_LINK, row.id, {**row.inputs, "s3": events}))}


def _end_link(call: Call) -> dict[str, Any]:
    row = _found_link(call)
    call.region.delete(LUSTRE_LINK, row.id)
    is_emptied = bool(call.parameters.get("DeleteDataInFileSystem"))
    return {"AssociationId": row.id, "Lifecycle": "DELETING", "DeleteDataInFileSystem": is_emptied}


def _found_link(call: Call) -> Record:
    id = call.parameters["AssociationId"]
    found = call.find(LUSTRE_LINK, id)
    if found is None:
        raise _no_link(id)
    return found


def _no_link(id: str) -> AwsError:
    return AwsError("DataRepositoryAssociationNotFound", f"Data repository association '{id}' does not exist.")


def _events_given(s3: dict[str, Any] | None) -> dict[str, Any]:
    keys = {"AutoImportPolicy": "autoImportPolicy", "AutoExportPolicy": "autoExportPolicy"}
    given = {key: (s3 or {}).get(name) for name, key in keys.items()}
    return {key: {"events": policy.get("Events") or []} for key, policy in given.items() if policy is not None}


def _create_efs(call: Call) -> dict[str, Any]:
    asked = call.parameters
    for row in call.records(EFS):
        if row.outputs["creationToken"] == asked.get("CreationToken"):
            raise AwsError("FileSystemAlreadyExists", f"File system '{row.id}' already exists.", status=409)
    inputs = {
        "creationToken": asked.get("CreationToken"),
        "encrypted": asked.get("Encrypted"),
        "kmsKeyId": asked.get("KmsKeyId"),
        "performanceMode": asked.get("PerformanceMode"),
        "throughputMode": asked.get("ThroughputMode"),
        "tags": named_tags(asked.get("Tags")),
    }
    return _efs_view(call, made(call, EFS, inputs, waits=False))


def _create_target(call: Call) -> dict[str, Any]:
    asked = call.parameters
    inputs = {
        "fileSystemId": asked["FileSystemId"],
        "subnetId": asked["SubnetId"],
        "securityGroups": asked.get("SecurityGroups"),
    }
    return _target_view(made(call, MOUNT_TARGET, inputs, has_tags=False))


def _end_lustre(call: Call) -> dict[str, Any]:
    row = living(call, LUSTRE, call.parameters["FileSystemId"])
    call.region.delete(LUSTRE, row.id)
    return {"FileSystemId": row.id, "Lifecycle": "DELETING"}


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
        "FileSystemArn": row.outputs["arn"],
        "Encrypted": bool(row.inputs.get("encrypted")),
        "LifeCycleState": "creating" if _is_creating(call, row) else "available",
        "NumberOfMountTargets": len(list(_targets(call, row.id))),
        "SizeInBytes": {"Value": 6144},
        "PerformanceMode": row.outputs["performanceMode"],
        "ThroughputMode": row.inputs["throughputMode"],
        "Tags": tag_list(row.tags),
    }


def _target_views(call: Call) -> dict[str, Any]:
    wanted, target = call.parameters.get("FileSystemId"), call.parameters.get("MountTargetId")
    if target is not None:
        return {"MountTargets": [_target_view(_target(call, target))]}
    if wanted is None:
        raise AwsError("BadRequest", "FileSystemId, MountTargetId or AccessPointId is needed")
    _check_found([wanted], [row for row in call.records(EFS) if row.id == wanted])
    return {"MountTargets": [_target_view(row) for row in _targets(call, wanted)]}


def _target(call: Call, id: str) -> Record:
    found = call.find(MOUNT_TARGET, id)
    if found is None:
        raise AwsError("MountTargetNotFound", f"Mount target '{id}' does not exist.", status=404)
    return found


def _groups_of_target(call: Call) -> dict[str, Any]:
    return {"SecurityGroups": _target(call, call.parameters["id"]).inputs.get("securityGroups") or []}


def _change_groups(call: Call) -> dict[str, Any]:
    row = _target(call, call.parameters["id"])
    call.region.update(MOUNT_TARGET, row.id, {**row.inputs, "securityGroups": call.parameters["SecurityGroups"]})
    return {}


def _efs(call: Call) -> Record:
    id = call.parameters["id"]
    found = call.find(EFS, id)
    _check_found([id], [] if found is None else [found])
    assert found is not None  # else refused above
    return found


def _tags_of_efs(call: Call) -> dict[str, Any]:
    return {"Tags": tag_list(_efs(call).tags)}


def _tag_efs(call: Call) -> dict[str, Any]:
    row = _efs(call)
    retag(call, row, {**row.tags, **named_tags(call.parameters["Tags"])})
    return {}


def _untag_efs(call: Call) -> dict[str, Any]:
    row, gone = _efs(call), call.parameters["tagKeys"]
    retag(call, row, {key: value for key, value in row.tags.items() if key not in gone})
    return {}


def _lifecycle(call: Call) -> dict[str, Any]:
    """The policies that were asked for; whatever they say, nothing moves to colder storage here."""
    return {"LifecyclePolicies": _efs(call).facts.get("lifecycle") or []}


def _change_lifecycle(call: Call) -> dict[str, Any]:
    row = call.region.store.put(_efs(call).changed(lifecycle=call.parameters["LifecyclePolicies"]))
    return {"LifecyclePolicies": row.facts["lifecycle"]}


def _update_efs(call: Call) -> dict[str, Any]:
    row = _efs(call)
    mode = call.parameters.get("ThroughputMode") or row.inputs["throughputMode"]
    return _efs_view(call, call.region.update(EFS, row.id, {**row.inputs, "throughputMode": mode}))


def _target_view(row: Record) -> dict[str, Any]:
    return {
        "MountTargetId": row.id,
        "FileSystemId": row.inputs["fileSystemId"],
        "SubnetId": row.inputs["subnetId"],
        "LifeCycleState": "available",
        "IpAddress": row.outputs["ipAddress"],
    }


def _end(token: str) -> Handler:
    def handler(call: Call) -> dict[str, Any]:
        call.region.delete(token, living(call, token, call.parameters["id"]).id)
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


FSX: dict[str, Handler] = {
    "CreateFileSystem": _create_lustre,
    "DescribeFileSystems": _lustre_views,
    "DeleteFileSystem": _end_lustre,
    "TagResource": _tag_lustre,
    "UntagResource": _untag_lustre,
    "ListTagsForResource": _tags_of_lustre,
    "UpdateFileSystem": _update_lustre,
    "CreateDataRepositoryAssociation": _create_link,
    "DescribeDataRepositoryAssociations": _link_views,
    "UpdateDataRepositoryAssociation": _update_link,
    "DeleteDataRepositoryAssociation": _end_link,
}
_EFS_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", r"/2015-02-01/file-systems/?", _create_efs),
    ("GET", r"/2015-02-01/file-systems/?", _efs_views),
    ("PUT", r"/2015-02-01/file-systems/(?P<id>[^/]+)", _update_efs),
    ("DELETE", r"/2015-02-01/file-systems/(?P<id>[^/]+)", _end(EFS)),
    ("GET", r"/2015-02-01/file-systems/(?P<id>[^/]+)/lifecycle-configuration", _lifecycle),
    ("PUT", r"/2015-02-01/file-systems/(?P<id>[^/]+)/lifecycle-configuration", _change_lifecycle),
    ("GET", r"/2015-02-01/resource-tags/(?P<id>[^/]+)", _tags_of_efs),
    ("POST", r"/2015-02-01/resource-tags/(?P<id>[^/]+)", _tag_efs),
    ("DELETE", r"/2015-02-01/resource-tags/(?P<id>[^/]+)", _untag_efs),
    ("POST", r"/2015-02-01/mount-targets/?", _create_target),
    ("GET", r"/2015-02-01/mount-targets/?", _target_views),
    ("GET", r"/2015-02-01/mount-targets/(?P<id>[^/]+)/security-groups", _groups_of_target),
    ("PUT", r"/2015-02-01/mount-targets/(?P<id>[^/]+)/security-groups", _change_groups),
    ("DELETE", r"/2015-02-01/mount-targets/(?P<id>[^/]+)", _end(MOUNT_TARGET)),
)


def efs_route(method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
    """The handler of a REST request to EFS, and the parameters in its path; None if it is not known."""
    for wanted, pattern, handler in _EFS_ROUTES:
        found = re.fullmatch(pattern, path)
        if wanted == method and found is not None:
            return handler, found.groupdict()
    return None
