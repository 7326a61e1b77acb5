"""IAM's calls that make and change roles, their policies and instance profiles."""

from __future__ import annotations

from typing import Any  # parameters and answers are JSON-like
from urllib.parse import quote

from clusterctl_rehearsal.api.call import Call, Handler, tag_list
from clusterctl_rehearsal.api.iam import policies_of_role, profile_named, profile_view, role_named, role_view
from clusterctl_rehearsal.api.making import made, named_tags, retag
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY, ROLE_POLICY_ATTACHMENT

Answer = dict[str, Any]


def _create_role(call: Call) -> Answer:
    asked = call.parameters
    inputs = {
        "name": asked["RoleName"],
        "path": asked.get("Path"),
        "assumeRolePolicy": asked["AssumeRolePolicyDocument"],
        "permissionsBoundary": asked.get("PermissionsBoundary"),
        "description": asked.get("Description"),
        "tags": named_tags(asked.get("Tags")),
    }
    row = made(call, ROLE, inputs)
    return {"Role": {**role_view(row), "Tags": tag_list(row.tags)}}


def _create_profile(call: Call) -> Answer:
    asked = call.parameters
    inputs = {"name": asked["InstanceProfileName"], "path": asked.get("Path"), "tags": named_tags(asked.get("Tags"))}
    row = made(call, INSTANCE_PROFILE, inputs)
    return {"InstanceProfile": {**profile_view(call, row), "Tags": tag_list(row.tags)}}


def _add_role(call: Call) -> Answer:
    profile, role = profile_named(call), role_named(call)
    if profile.inputs.get("role"):
        message = "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1"
        raise AwsError("LimitExceeded", message, status=409)
    call.region.update(INSTANCE_PROFILE, profile.id, {**profile.inputs, "role": role.id})
    return {}


def _put_policy(call: Call) -> Answer:
    """Gives a role an inline policy, or replaces the one that has this name already."""
    role, name = role_named(call), call.parameters["PolicyName"]
    inputs = {"role": role.id, "name": name, "policy": call.parameters["PolicyDocument"]}
    before = next((row for row in policies_of_role(call, ROLE_POLICY, role) if row.inputs["name"] == name), None)
    if before is not None:
        call.region.update(ROLE_POLICY, before.id, inputs)
    else:
        made(call, ROLE_POLICY, inputs, has_tags=False)
    return {}


def _get_policy(call: Call) -> Answer:
    role, name = role_named(call), call.parameters["PolicyName"]
    for row in policies_of_role(call, ROLE_POLICY, role):
        if row.inputs["name"] == name:
            return {"RoleName": role.id, "PolicyName": name, "PolicyDocument": quote(row.inputs["policy"])}
    raise AwsError("NoSuchEntity", f"The role policy with name {name} cannot be found.", status=404)


def _attach_policy(call: Call) -> Answer:
    """Attaches a managed policy to a role; nothing changes if it is attached already."""
    role, arn = role_named(call), call.parameters["PolicyArn"]
    attached = [row.inputs["policyArn"] for row in policies_of_role(call, ROLE_POLICY_ATTACHMENT, role)]
    if arn not in attached:
        made(call, ROLE_POLICY_ATTACHMENT, {"role": role.id, "policyArn": arn}, has_tags=False)
    return {}


def _tag(call: Call, row: Record) -> Answer:
    retag(call, row, {**row.tags, **named_tags(call.parameters["Tags"])})
    return {}


def _untag(call: Call, row: Record) -> Answer:
    gone = call.parameters["TagKeys"]
    retag(call, row, {key: value for key, value in row.tags.items() if key not in gone})
    return {}


def _update_trust(call: Call) -> Answer:
    return _update(call, {"assumeRolePolicy": call.parameters["PolicyDocument"]})


def _update_role(call: Call) -> Answer:
    names = {"Description": "description", "MaxSessionDuration": "maxSessionDuration"}
    return _update(call, {name: call.parameters[key] for key, name in names.items() if key in call.parameters})


def _bound(call: Call) -> Answer:
    return _update(call, {"permissionsBoundary": call.parameters["PermissionsBoundary"]})


def _unbound(call: Call) -> Answer:
    if not role_named(call).inputs.get("permissionsBoundary"):
        raise AwsError("NoSuchEntity", f"Role {role_named(call).id} has no permissions boundary.", status=404)
    return _update(call, {"permissionsBoundary": None})


def _update(call: Call, changes: Answer) -> Answer:
    row = role_named(call)
    call.region.update(ROLE, row.id, {**row.inputs, **changes})
    return {}


MAKE_IDENTITIES: dict[str, Handler] = {
    "CreateRole": _create_role,
    "CreateInstanceProfile": _create_profile,
    "AddRoleToInstanceProfile": _add_role,
    "UpdateAssumeRolePolicy": _update_trust,
    "UpdateRole": _update_role,
    "UpdateRoleDescription": _update_role,
    "PutRolePermissionsBoundary": _bound,
    "DeleteRolePermissionsBoundary": _unbound,
    "PutRolePolicy": _put_policy,
    "GetRolePolicy": _get_policy,
    "AttachRolePolicy": _attach_policy,
    "TagRole": lambda call: _tag(call, role_named(call)),
    "UntagRole": lambda call: _untag(call, role_named(call)),
    "TagInstanceProfile": lambda call: _tag(call, profile_named(call)),
    "UntagInstanceProfile": lambda call: _untag(call, profile_named(call)),
}
