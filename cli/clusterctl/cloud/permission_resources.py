"""The resource types in IAM: instance profiles and roles, found by the cluster's id in their names."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.names import ID_TAG, id_in_name

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import tags_of
from clusterctl.cloud.resource import CloudResource, ResourceType


def _profiles(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.iam.get_paginator("list_instance_profiles").paginate():
        for row in page["InstanceProfiles"]:
            found_id = id_in_name(row["InstanceProfileName"])
            if found_id is not None and cluster_id in (None, found_id):
                roles = [role["RoleName"] for role in row.get("Roles", [])]
                yield CloudResource(
                    kind="instance profile",
                    id=row["InstanceProfileName"],
                    parent=roles[0] if roles else None,
                    created_at=row.get("CreateDate"),
                    tags={ID_TAG: found_id},
                )


def _delete_profile(clients: Clients, found: CloudResource) -> None:
    if found.parent is not None:
        clients.iam.remove_role_from_instance_profile(InstanceProfileName=found.id, RoleName=found.parent)
    clients.iam.delete_instance_profile(InstanceProfileName=found.id)


def _roles(clients: Clients, cluster_id: str | None) -> Iterator[CloudResource]:
    for page in clients.iam.get_paginator("list_roles").paginate():
        for row in page["Roles"]:
            found_id = id_in_name(row["RoleName"])
            if found_id is not None and cluster_id in (None, found_id):
                # The list has no tags. They are needed only where all clusters are looked for.
                tags = _role_tags(clients, row["RoleName"]) if cluster_id is None else {}
                yield CloudResource(
                    kind="role",
                    id=row["RoleName"],
                    created_at=row.get("CreateDate"),
                    tags={**tags, ID_TAG: found_id},
                )


def _role_tags(clients: Clients, name: str) -> dict[str, str]:
    """What the role's tags say; nothing where it has just gone."""
    try:
        return tags_of(clients.iam.list_role_tags(RoleName=name)["Tags"])
    except clients.iam.exceptions.NoSuchEntityException:
        return {}


def _delete_role(clients: Clients, found: CloudResource) -> None:
    iam = clients.iam
    for policy in iam.list_attached_role_policies(RoleName=found.id)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=found.id, PolicyArn=policy["PolicyArn"])
    for name in iam.list_role_policies(RoleName=found.id)["PolicyNames"]:
        iam.delete_role_policy(RoleName=found.id, PolicyName=name)
    iam.delete_role(RoleName=found.id)


PERMISSION_KINDS = (
    ResourceType(
        name="instance profile",
        types=("aws:iam/instanceProfile:InstanceProfile",),
        find=_profiles,
        delete=_delete_profile,
        bills=None,
        is_guard=True,
        is_global=True,
    ),
    ResourceType(
        name="role",
        types=("aws:iam/role:Role",),
        find=_roles,
        delete=_delete_role,
        bills=None,
        is_guard=True,
        is_global=True,
    ),
)
"""In the order in which they are ended."""
