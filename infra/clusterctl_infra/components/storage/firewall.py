"""The open ports between nodes and their file systems: rules that name the other side's group, never a CIDR range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.network import named

LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""In both directions, between clients and servers and among servers (FSx for Lustre User Guide, "File system access
control with Amazon VPC"; read 2026-11). FSx checks that the first is open when it makes a file system."""
NFS_PORT = 2049


@dataclass(frozen=True, kw_only=True)
class StorageFirewallArgs:
    """What the groups are made from; `node_group_id` is the nodes' own group."""

    vpc_id: pulumi.Input[str]
    node_group_id: pulumi.Input[str]
    tags: pulumi.Output[Mapping[str, str]]


class LustreFirewall(pulumi.ComponentResource):
    """The group of all Lustre servers; file systems and nodes wait for `rules`."""

    group_id: pulumi.Output[str]
    rules: list[pulumi.Resource]

    def __init__(self, name: str, args: StorageFirewallArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:LustreFirewall", name, None, opts)
        group = _group(self, name, args, role="lustre", description="clusterctl: Lustre servers of one cluster")
        self.group_id = group.id
        self.rules = []
        for first, last in LUSTRE_PORTS:
            ports = PortRules(parent=self, prefix=name, args=args, first=first, last=last)
            self.rules += [
                ports.let_in("lustre-from-nodes", group.id, args.node_group_id),
                ports.let_in("lustre-from-lustre", group.id, group.id),
                ports.let_in("nodes-from-lustre", args.node_group_id, group.id),
                ports.let_out("lustre-to-nodes", group.id, args.node_group_id),
                ports.let_out("lustre-to-lustre", group.id, group.id),
            ]
        self.register_outputs({})


class EfsFirewall(pulumi.ComponentResource):
    """The group of all mount targets; they wait for `rules`."""

    group_id: pulumi.Output[str]
    rules: list[pulumi.Resource]

    def __init__(self, name: str, args: StorageFirewallArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:EfsFirewall", name, None, opts)
        group = _group(self, name, args, role="efs", description="clusterctl: EFS mount targets of one cluster")
        self.group_id = group.id
        ports = PortRules(parent=self, prefix=name, args=args, first=NFS_PORT, last=NFS_PORT)
        self.rules = [ports.let_in("efs-from-nodes", group.id, args.node_group_id)]
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class PortRules:
    """Makes the rules for one range of TCP ports between two groups."""

    parent: pulumi.Resource
    prefix: str
    args: StorageFirewallArgs
    first: int
    last: int

    def let_in(
        self, role: str, group_id: pulumi.Input[str], other_id: pulumi.Input[str]
    ) -> aws.vpc.SecurityGroupIngressRule:
        """The rule that admits the other group."""
        name = self._name(role)
        return aws.vpc.SecurityGroupIngressRule(
            name,
            security_group_id=group_id,
            referenced_security_group_id=other_id,
            ip_protocol="tcp",
            from_port=self.first,
            to_port=self.last,
            tags=named(self.args.tags, name),
            opts=pulumi.ResourceOptions(parent=self.parent),
        )

    def let_out(
        self, role: str, group_id: pulumi.Input[str], other_id: pulumi.Input[str]
    ) -> aws.vpc.SecurityGroupEgressRule:
        """The rule that lets the group reach the other one."""
        name = self._name(role)
        return aws.vpc.SecurityGroupEgressRule(
            name,
            security_group_id=group_id,
            referenced_security_group_id=other_id,
            ip_protocol="tcp",
            from_port=self.first,
            to_port=self.last,
            tags=named(self.args.tags, name),
            opts=pulumi.ResourceOptions(parent=self.parent),
        )

    def _name(self, role: str) -> str:
        return f"{self.prefix}-{role}-{self.first}"


def _group(
    parent: pulumi.Resource, name: str, args: StorageFirewallArgs, *, role: str, description: str
) -> aws.ec2.SecurityGroup:
    return aws.ec2.SecurityGroup(
        f"{name}-{role}",
        vpc_id=args.vpc_id,
        description=description,
        tags=named(args.tags, f"{name}-{role}"),
        opts=pulumi.ResourceOptions(parent=parent),
    )
