"""One FSx for Lustre file system, made or adopted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.storage.data import data_options, data_tags
from clusterctl_infra.components.storage.firewall import LustreFirewall
from clusterctl_infra.plan.storage import lustre_source
from clusterctl_infra.plan.storage_model import LustrePlan

LUSTRE_VERSION = "2.15"
"""AWS's own default is 2.10 or 2.12 (FSx API, CreateFileSystem; read 2026-11), which newer kernels' clients left."""


@dataclass(frozen=True, kw_only=True)
class LustreArgs:
    """What it is made from; `firewall` is None where it is adopted."""

    plan: LustrePlan
    subnet_id: pulumi.Input[str]
    firewall: LustreFirewall | None
    tags: pulumi.Output[Mapping[str, str]]


class Lustre(pulumi.ComponentResource):
    """The file system; nodes wait for `ready`, which on AWS takes five to ten minutes."""

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
        self.register_outputs({})

    def _own(self, name: str, args: LustreArgs) -> aws.fsx.LustreFileSystem:
        plan, firewall = args.plan, args.firewall
        assert firewall is not None  # whoever makes one has made its firewall
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

    def _adopted(self, name: str, args: LustreArgs) -> aws.fsx.LustreFileSystem:
        """Read, never changed; another name, so that a mount may turn from an own one into an adopted one."""
        assert args.plan.adopted_id is not None
        return aws.fsx.LustreFileSystem.get(
            f"{name}-{args.plan.label}-adopted", args.plan.adopted_id, opts=pulumi.ResourceOptions(parent=self)
        )
