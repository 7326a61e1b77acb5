"""How a file system that holds data is marked: for people, for `down`, and against being deleted by mistake."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from clusterctl_infra.components.network import named
from clusterctl_infra.names import MOUNT_TAG, ON_DELETE_TAG
from clusterctl_infra.plan.storage_model import StoragePlan, is_retained

PATIENCE = pulumi.CustomTimeouts(create="60m", update="60m", delete="60m")
"""The provider waits 30 minutes for a Lustre file system (terraform-provider-aws, lustre_file_system.go); a large one
takes longer, and if the provider gives up, the `up` fails while the file system bills."""


def data_tags(
    tags: pulumi.Output[Mapping[str, str]], name: str, storage: StoragePlan
) -> pulumi.Output[Mapping[str, str]]:
    """The tags, with the mount and what `down` does with the file system."""
    ours = {MOUNT_TAG: storage.mount, ON_DELETE_TAG: "retain" if is_retained(storage) else "delete"}
    return named(tags, name).apply(lambda rows: {**rows, **ours})


def data_options(
    parent: pulumi.Resource, storage: StoragePlan, *, depends_on: list[pulumi.Resource] | None = None
) -> pulumi.ResourceOptions:
    """The options of a file system: one to be kept is protected, so that no `up` and no plain `pulumi destroy` deletes
    it, whatever cluster.yaml says.
    """
    return pulumi.ResourceOptions(
        parent=parent, depends_on=depends_on, protect=is_retained(storage), custom_timeouts=PATIENCE
    )
