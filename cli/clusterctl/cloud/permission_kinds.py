"""Kinds in IAM: instance profiles and roles, found by the cluster's id in their names, which only they carry."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, Kind


def _profiles(clients: Clients, cluster_id: str) -> Iterator[Found]:
    for page in clients.iam.get_paginator("list_instance_profiles").paginate():
        for row in page["InstanceProfiles"]:
            if cluster_id in row["InstanceProfileName"]:
                roles = [role["RoleName"] for role in row.get("Roles", [])]
                yield Found(kind="instance profile", id=row["InstanceProfileName"], parent=roles[0] if roles else None)


def _delete_profile(clients: Clients, found: Found) -> None:
    if found.parent is not None:
        clients.iam.remove_role_from_instance_profile(InstanceProfileName=found.id, RoleName=found.parent)
    clients.iam.delete_instance_profile(InstanceProfileName=found.id)


def _roles(clients: Clients, cluster_id: str) -> Iterator[Found]:
    for page in clients.iam.get_paginator("list_roles").paginate():
        for row in page["Roles"]:
            if cluster_id in row["RoleName"]:
                yield Found(kind="role", id=row["RoleName"], created_at=row.get("CreateDate"))


def _delete_role(clients: Clients, found: Found) -> None:
    iam = clients.iam
    for policy in iam.list_attached_role_policies(RoleName=found.id)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=found.id, PolicyArn=policy["PolicyArn"])
    for name in iam.list_role_policies(RoleName=found.id)["PolicyNames"]:
        iam.delete_role_policy(RoleName=found.id, PolicyName=name)
    iam.delete_role(RoleName=found.id)


PERMISSION_KINDS = (
    Kind(
        name="instance profile",
        types=("aws:iam/instanceProfile:InstanceProfile",),
        find=_profiles,
        delete=_delete_profile,
        bills=None,
    ),
    Kind(name="role", types=("aws:iam/role:Role",), find=_roles, delete=_delete_role, bills=None),
)
"""In the order in which they are ended."""
