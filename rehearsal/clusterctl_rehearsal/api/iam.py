"""IAM's calls that find and end roles, their policies and instance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # parameters and answers are JSON-like
from urllib.parse import quote

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY, ROLE_POLICY_ATTACHMENT

USUAL_PAGE = 100
"""How many rows an answer has if the call names no number (IAM API reference, ListRoles; 2026-11-26)."""


def _paged(call: Call, key: str, rows: Sequence[Any]) -> dict[str, Any]:
    """The page that was asked for, and the marker of the next. Raises InvalidInput for a marker that is not ours."""
    mark = str(call.parameters.get("Marker") or "0")
    if not (mark.isascii() and mark.isdigit()):
        raise AwsError("InvalidInput", f"Invalid Marker: {mark}")
    end = int(mark) + int(call.parameters.get("MaxItems") or USUAL_PAGE)
    more = {"Marker": str(end)} if end < len(rows) else {}
    return {key: list(rows[int(mark) : end]), "IsTruncated": bool(more), **more}


def role_named(call: Call, name: str | None = None) -> Record:
    wanted = name or call.parameters["RoleName"]
    found = call.region.store.get(ROLE, wanted)
    if found is None:
        raise AwsError("NoSuchEntity", f"The role with name {wanted} cannot be found.", status=404)
    return found


def profile_named(call: Call) -> Record:
    wanted = call.parameters["InstanceProfileName"]
    found = call.region.store.get(INSTANCE_PROFILE, wanted)
    if found is None:
        raise AwsError("NoSuchEntity", f"Instance Profile {wanted} cannot be found.", status=404)
    return found


def role_view(row: Record) -> dict[str, Any]:
    boundary = row.inputs.get("permissionsBoundary")
    limited = {"PermissionsBoundaryType": "Policy", "PermissionsBoundaryArn": boundary} if boundary else None
    return {
        **_named(row, "Role"),
        "AssumeRolePolicyDocument": quote(row.inputs["assumeRolePolicy"]),
        "Description": row.inputs.get("description"),
        "MaxSessionDuration": row.inputs["maxSessionDuration"],
        "PermissionsBoundary": limited,
    }


def profile_view(call: Call, row: Record) -> dict[str, Any]:
    role = row.inputs.get("role")
    roles = [role_view(role_named(call, role))] if role else []
    return {**_named(row, "InstanceProfile"), "Roles": roles}


def _named(row: Record, kind: str) -> dict[str, Any]:
    return {
        "Path": row.inputs["path"],
        f"{kind}Name": row.id,
        f"{kind}Id": row.outputs["uniqueId"],
        "Arn": row.outputs["arn"],
        "CreateDate": row.outputs["createDate"],
    }


def _roles(call: Call) -> dict[str, Any]:
    rows = (row for row in call.region.store.live(ROLE) if _under_path(call, row))
    return _paged(call, "Roles", [role_view(row) for row in rows])


def _profiles(call: Call) -> dict[str, Any]:
    rows = (row for row in call.region.store.live(INSTANCE_PROFILE) if _under_path(call, row))
    return _paged(call, "InstanceProfiles", [profile_view(call, row) for row in rows])


def _under_path(call: Call, row: Record) -> bool:
    return str(row.inputs["path"]).startswith(call.parameters.get("PathPrefix", "/"))


def _profiles_of_role(call: Call) -> dict[str, Any]:
    role = role_named(call)
    rows = (row for row in call.region.store.live(INSTANCE_PROFILE) if row.inputs.get("role") == role.id)
    return _paged(call, "InstanceProfiles", [profile_view(call, row) for row in rows])


def _remove_role(call: Call) -> dict[str, Any]:
    profile, role = profile_named(call), role_named(call)
    if profile.inputs.get("role") != role.id:
        raise AwsError("NoSuchEntity", f"Role {role.id} is not in instance profile {profile.id}.", status=404)
    kept = {key: value for key, value in profile.inputs.items() if key != "role"}
    call.region.update(INSTANCE_PROFILE, profile.id, kept)
    return {}


def _delete_profile(call: Call) -> dict[str, Any]:
    if profile_named(call).inputs.get("role"):
        message = "Cannot delete entity, must remove roles from instance profile first."
        raise AwsError("DeleteConflict", message, status=409)
    call.region.delete(INSTANCE_PROFILE, call.parameters["InstanceProfileName"])
    return {}


def _delete_role(call: Call) -> dict[str, Any]:
    call.region.delete(ROLE, role_named(call).id)
    return {}


def _attached(call: Call) -> dict[str, Any]:
    role = role_named(call)
    arns = [row.inputs["policyArn"] for row in policies_of_role(call, ROLE_POLICY_ATTACHMENT, role)]
    rows = [{"PolicyArn": arn, "PolicyName": arn.rpartition("/")[2]} for arn in arns]
    return _paged(call, "AttachedPolicies", rows)


def _inline(call: Call) -> dict[str, Any]:
    rows = policies_of_role(call, ROLE_POLICY, role_named(call))
    return _paged(call, "PolicyNames", [row.inputs["name"] for row in rows])


def policies_of_role(call: Call, token: str, role: Record) -> list[Record]:
    return [row for row in call.region.store.live(token) if row.inputs["role"] == role.id]


def _end_policy(token: str, parameter: str, key: str) -> Handler:
    def handler(call: Call) -> dict[str, Any]:
        wanted = call.parameters[parameter]
        for row in policies_of_role(call, token, role_named(call)):
            if row.inputs[key] == wanted:
                call.region.delete(token, row.id)
                return {}
        raise AwsError("NoSuchEntity", f"Policy {wanted} was not found.", status=404)

    return handler


IAM: dict[str, Handler] = {
    "ListRoles": _roles,
    "GetRole": lambda call: {
        "Role": {**role_view(role_named(call)), "Tags": tag_list(role_named(call).tags)}
    },  # ListRoles shows no tags
    "ListRoleTags": lambda call: _paged(call, "Tags", tag_list(role_named(call).tags)),
    "DeleteRole": _delete_role,
    "ListAttachedRolePolicies": _attached,
    "DetachRolePolicy": _end_policy(ROLE_POLICY_ATTACHMENT, "PolicyArn", "policyArn"),
    "ListRolePolicies": _inline,
    "DeleteRolePolicy": _end_policy(ROLE_POLICY, "PolicyName", "name"),
    "ListInstanceProfiles": _profiles,
    "ListInstanceProfilesForRole": _profiles_of_role,
    "GetInstanceProfile": lambda call: {"InstanceProfile": profile_view(call, profile_named(call))},
    "ListInstanceProfileTags": lambda call: _paged(call, "Tags", tag_list(profile_named(call).tags)),
    "RemoveRoleFromInstanceProfile": _remove_role,
    "DeleteInstanceProfile": _delete_profile,
}
