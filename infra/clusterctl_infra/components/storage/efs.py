"""One EFS file system, made or adopted, and the mount target through which nodes reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.storage.data import data_options, data_tags
from clusterctl_infra.components.storage.firewall import EfsFirewall
from clusterctl_infra.plan.storage import efs_source
from clusterctl_infra.plan.storage_model import EfsPlan


@dataclass(frozen=True, kw_only=True)
class EfsArgs:
    """The arguments of an EFS file system."""

    plan: EfsPlan
    subnet_id: pulumi.Input[str]
    firewall: EfsFirewall
    tags: pulumi.Output[Mapping[str, str]]


class Efs(pulumi.ComponentResource):
    """The file system and its mount target in the nodes' zone; nodes wait for `ready`.

    The file system's name resolves a minute or so after the mount target is there, so nodes try again.
    """

    source: pulumi.Output[str]
    """What nodes mount."""
    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: EfsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        logical = f"{name}-{args.plan.label}"
        super().__init__("clusterctl:infra:Efs", logical, None, opts)
        file_system = self._file_system(logical, args)
        target = aws.efs.MountTarget(
            logical,
            file_system_id=file_system.id,
            subnet_id=args.subnet_id,
            security_groups=[args.firewall.group_id],
            opts=pulumi.ResourceOptions(parent=self, depends_on=args.firewall.rules),
        )
        self.source = file_system.dns_name.apply(efs_source)
        self.ready = [target]
        self.register_outputs({})

    def _file_system(self, logical: str, args: EfsArgs) -> aws.efs.FileSystem:
        plan = args.plan
        if plan.adopted_id is not None:
            return aws.efs.FileSystem.get(
                f"{logical}-adopted", plan.adopted_id, opts=pulumi.ResourceOptions(parent=self)
            )
        return aws.efs.FileSystem(
            logical,
            encrypted=plan.encrypted,
            kms_key_id=plan.kms_key,
            throughput_mode="elastic",
            tags=data_tags(args.tags, logical, plan),
            opts=data_options(self, plan),
        )
