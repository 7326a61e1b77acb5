"""All storage of a cluster: what is behind each mount, and what nodes need to mount it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from clusterctl_bootstrap.node_plan import MountPlan

from clusterctl_infra.components.storage.buckets import BucketRights, BucketRightsArgs
from clusterctl_infra.components.storage.efs import Efs, EfsArgs
from clusterctl_infra.components.storage.firewall import EfsFirewall, LustreFirewall, StorageFirewallArgs
from clusterctl_infra.components.storage.lustre import Lustre, LustreArgs
from clusterctl_infra.plan.storage import mount_plan
from clusterctl_infra.plan.storage_model import BucketPlan, EfsPlan, LustrePlan, StoragePlan

Mounts = pulumi.Output[tuple[MountPlan, ...]]


@dataclass(frozen=True, kw_only=True)
class StorageArgs:
    """What storage is made from; services have a subnet of their own, so that none takes a slot's address."""

    plan: tuple[StoragePlan, ...]
    region: str
    bucket_regions: Mapping[str, pulumi.Output[str]]
    """Bucket → where it is."""
    vpc_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    node_group_id: pulumi.Input[str]
    role_name: pulumi.Input[str]
    tags: pulumi.Output[Mapping[str, str]]


class Storage(pulumi.ComponentResource):
    """Everything that is mounted; capacity and nodes wait for `ready`."""

    mounts: Mounts
    """In the plan's order, with the names that AWS gave."""
    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:Storage", name, None, opts)
        self._prefix = name
        self._args = args
        self.ready = []
        self._lustre_firewall = self._make_lustre_firewall()
        self._efs_firewall = self._make_efs_firewall()
        self._make_bucket_rights()
        self.mounts = pulumi.Output.all(*(self._mount(row) for row in args.plan)).apply(tuple)
        self.register_outputs({})

    def _mount(self, row: StoragePlan) -> pulumi.Output[MountPlan]:
        """Makes what is behind the mount, if it is to be made; returns what nodes need to mount it."""
        if isinstance(row, LustrePlan):
            return self._lustre(row).source.apply(lambda source: mount_plan(row, source=source))
        if isinstance(row, EfsPlan):
            return self._efs(row).source.apply(lambda source: mount_plan(row, source=source))
        if isinstance(row, BucketPlan):
            return self._args.bucket_regions[row.bucket].apply(lambda region: mount_plan(row, region=region))
        return pulumi.Output.from_input(mount_plan(row))

    def _lustre(self, row: LustrePlan) -> Lustre:
        args = self._args
        made = Lustre(
            self._prefix,
            LustreArgs(plan=row, subnet_id=args.subnet_id, firewall=self._lustre_firewall, tags=args.tags),
            self._child(),
        )
        self.ready += made.ready
        return made

    def _efs(self, row: EfsPlan) -> Efs:
        args, firewall = self._args, self._efs_firewall
        assert firewall is not None  # made whenever the plan has an EFS
        made = Efs(
            self._prefix,
            EfsArgs(plan=row, subnet_id=args.subnet_id, firewall=firewall, tags=args.tags),
            self._child(),
        )
        self.ready += made.ready
        return made

    def _make_lustre_firewall(self) -> LustreFirewall | None:
        if not any(isinstance(row, LustrePlan) and row.adopted_id is None for row in self._args.plan):
            return None
        made = LustreFirewall(self._prefix, self._firewall_args(), self._child())
        self.ready += made.rules
        return made

    def _make_efs_firewall(self) -> EfsFirewall | None:
        if not any(isinstance(row, EfsPlan) for row in self._args.plan):
            return None
        return EfsFirewall(self._prefix, self._firewall_args(), self._child())

    def _make_bucket_rights(self) -> None:
        buckets = [row for row in self._args.plan if isinstance(row, BucketPlan)]
        if buckets:
            args = BucketRightsArgs(buckets=buckets, role_name=self._args.role_name, region=self._args.region)
            self.ready += BucketRights(self._prefix, args, self._child()).ready

    def _firewall_args(self) -> StorageFirewallArgs:
        args = self._args
        return StorageFirewallArgs(vpc_id=args.vpc_id, node_group_id=args.node_group_id, tags=args.tags)

    def _child(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)
