"""IAM: roles, their policies, instance profiles. Global: no region."""

from __future__ import annotations

import json

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties
from clusterctl_rehearsal.region.types.row import Request, ResourceType, random_hex

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE_POLICY_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
INSTANCE_PROFILE = "aws:iam/instanceProfile:InstanceProfile"


def _policy_check(key: str) -> Properties:
    def check(request: Request) -> None:
        try:
            statements = json.loads(request.inputs.get(key) or "")["Statement"]
        except (ValueError, TypeError, KeyError) as e:
            raise AwsError("MalformedPolicyDocument", "The policy document is not a valid JSON policy.") from e
        if not statements:
            raise AwsError("MalformedPolicyDocument", "Syntax errors in policy.")

    return {"check": check}


def _named(kind: str, prefix: str) -> Properties:
    def outputs(request: Request) -> Properties:
        path = request.inputs.get("path") or "/"
        return {
            "arn": f"arn:aws:iam::{ACCOUNT_ID}:{kind}{path}{request.inputs['name']}",
            "createDate": request.timestamp(),
            "uniqueId": f"{prefix}{random_hex(17).upper()}",
        }

    return {"outputs": outputs}


IDENTITY_TYPES = (
    ResourceType(
        token=ROLE,
        label="IAM Role",
        service="IAM",
        create="CreateRole",
        delete="DeleteRole",
        not_found="NoSuchEntity",
        source="internal/service/iam/role.go",
        replace=("name", "namePrefix", "path"),
        name="name",
        unique=(("name",), "EntityAlreadyExists", "Role with name {name} already exists."),
        defaults={"path": "/", "maxSessionDuration": 3600, "forceDetachPolicies": False},
        blocked_by=(ROLE_POLICY, ROLE_POLICY_ATTACHMENT, INSTANCE_PROFILE),
        blocked=("DeleteConflict", "Cannot delete entity, must detach all policies first."),
        **_policy_check("assumeRolePolicy"),
        **_named("role", "AROA"),
    ),
    ResourceType(
        token=ROLE_POLICY,
        label="IAM Role Policy",
        service="IAM",
        create="PutRolePolicy",
        delete="DeleteRolePolicy",
        not_found="NoSuchEntity",
        source="internal/service/iam/role_policy.go",
        replace=("name", "namePrefix", "role"),
        name="name",
        needs={"role": ROLE},
        taggable=False,
        id=lambda inputs, region: f"{inputs['role']}:{inputs['name']}",
        **_policy_check("policy"),
    ),
    ResourceType(
        token=ROLE_POLICY_ATTACHMENT,
        label="IAM Role Policy Attachment",
        service="IAM",
        create="AttachRolePolicy",
        delete="DetachRolePolicy",
        not_found="NoSuchEntity",
        source="internal/service/iam/role_policy_attachment.go",
        replace=("policyArn", "role"),
        needs={"role": ROLE},
        taggable=False,
        id=lambda inputs, region: f"{inputs['role']}-{inputs['policyArn'].rpartition('/')[2]}",
    ),
    ResourceType(
        token=INSTANCE_PROFILE,
        label="IAM Instance Profile",
        service="IAM",
        create="CreateInstanceProfile",
        delete="DeleteInstanceProfile",
        not_found="NoSuchEntity",
        source="internal/service/iam/instance_profile.go",
        replace=("name", "namePrefix", "path"),
        name="name",
        unique=(("name",), "EntityAlreadyExists", "Instance Profile {name} already exists."),
        defaults={"path": "/"},
        needs={"role": ROLE},
        **_named("instance-profile", "AIPA"),
    ),
)
