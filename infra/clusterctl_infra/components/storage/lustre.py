"""One FSx for Lustre file system, made or adopted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.network import named
from clusterctl_infra.components.storage.data import data_options, data_tags
from clusterctl_infra.components.storage.firewall import LustreFirewall
from clusterctl_infra.plan.storage import lustre_source
from clusterctl_infra.plan.storage_model import LustrePlan, RepositoryPlan

LINK_PATIENCE = pulumi.CustomTimeouts(create="30m", update="30m", delete="30m")
"""The provider waits 10 minutes (terraform-provider-aws, data_repository_association.go; read 2026-11); after that the
`up` would fail while the file system bills."""
LUSTRE_VERSION = "2.15"
"""AWS's default is 2.10 or 2.12 (FSx API, CreateFileSystem; read 2026-11), which newer kernels' clients do not support.
"""


@dataclass(frozen=True, kw_only=True)
class LustreArgs:
    """What a Lustre file system is made from; `firewall` may be None for an adopted one."""

    plan: LustrePlan
    subnet_id: pulumi.Input[str]
    firewall: LustreFirewall | None
    tags: pulumi.Output[Mapping[str, str]]


class Lustre(pulumi.ComponentResource):
    """The file system and its link; nodes wait for `ready`, which on AWS takes five to ten minutes."""

    source: pulumi.Output[str]
    """What nodes mount."""
    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: LustreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:Lustre", f"{name}-{args.plan.label}", None, opts)
        file_system = self._adopted(name, args) if args.plan.adopted_id is not None else self._own(name, args)
        self.source = pulumi.Output.all(file_system.dns_name, file_system.mount_name).apply(
            lambda names: lustre_source(names[0], names[1])
        )
        self.ready = [file_system]
        if args.plan.repository is not None:
            self.ready.append(self._link(f"{name}-{args.plan.label}", args, args.plan.repository, file_system))
        self.register_outputs({})

    def _own(self, name: str, args: LustreArgs) -> aws.fsx.LustreFileSystem:
        plan, firewall = args.plan, args.firewall
        assert firewall is not None  # `Storage` makes it before any file system of the cluster's own
        logical = f"{name}-{plan.label}"
        return aws.fsx.LustreFileSystem(
            logical,
            deployment_type=plan.deployment_type,
            storage_capacity=plan.size_gib,
            per_unit_storage_throughput=plan.throughput,
            file_system_type_version=LUSTRE_VERSION,
            kms_key_id=plan.kms_key,
            subnet_ids=args.subnet_id,
            security_group_ids=[firewall.group_id],
            tags=data_tags(args.tags, logical, plan),
            opts=data_options(self, plan, depends_on=firewall.rules),
        )

    def _link(
        self, logical: str, args: LustreArgs, plan: RepositoryPlan, file_system: aws.fsx.LustreFileSystem
    ) -> aws.fsx.DataRepositoryAssociation:
        """The link to the bucket. Another bucket, folder or direction is another link, never another file system.

        Two links may not overlap, so the old one goes first, and the files stay (FSx API,
        CreateDataRepositoryAssociation and DeleteDataRepositoryAssociation; read 2026-11: all types but SCRATCH_1 have
        links, while the provider's page still speaks of PERSISTENT_2 alone). An update cannot end a direction: the
        provider takes events that are left out as unchanged (`Optional` and `Computed` in its
        data_repository_association.go).
        """
        directions = {"auto_import_policy": plan.imports, "auto_export_policy": plan.exports}
        policies = {name: {"events": list(events)} for name, events in directions.items() if events}
        return aws.fsx.DataRepositoryAssociation(
            logical,
            file_system_id=file_system.id,
            file_system_path=plan.path,
            data_repository_path=plan.address,
            batch_import_meta_data_on_create=bool(plan.imports),
            delete_data_in_filesystem=False,
            s3=cast(aws.fsx.DataRepositoryAssociationS3ArgsDict, policies),
            tags=named(args.tags, logical),
            opts=pulumi.ResourceOptions(
                parent=self,
                delete_before_replace=True,
                replacement_trigger=" ".join(policies),
                custom_timeouts=LINK_PATIENCE,
            ),
        )

    def _adopted(self, name: str, args: LustreArgs) -> aws.fsx.LustreFileSystem:
        """The adopted file system, read and never changed.

        It has another logical name, so that it can replace a file system of the cluster's own behind the same mount.
        """
        assert args.plan.adopted_id is not None
        return aws.fsx.LustreFileSystem.get(
            f"{name}-{args.plan.label}-adopted", args.plan.adopted_id, opts=pulumi.ResourceOptions(parent=self)
        )
