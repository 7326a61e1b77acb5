"""Who may talk to whom: nodes to each other and to everywhere, and the networks that were named to nodes, by SSH."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.network import EVERYWHERE, named
from clusterctl_infra.host_and_port import SSH_PORT

ALL_PROTOCOLS = "-1"


@dataclass(frozen=True, kw_only=True)
class FirewallArgs:
    """What the firewall is made from; `tags` are the cluster's."""

    vpc_id: pulumi.Input[str]
    ssh_cidrs: tuple[str, ...]
    tags: pulumi.Output[Mapping[str, str]]


class Firewall(pulumi.ComponentResource):
    """One security group for all nodes, and its rules; nodes wait for `rules`.

    EFA's traffic is not IP: only rules that name the group itself, in both directions, let it pass, whatever CIDR rules
    say (EC2 User Guide, "Get started with EFA", step 1; checked 2026-11).
    """

    security_group_id: pulumi.Output[str]
    rules: list[pulumi.Resource]

    def __init__(self, name: str, args: FirewallArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:Firewall", name, None, opts)
        group = aws.ec2.SecurityGroup(
            f"{name}-nodes",
            vpc_id=args.vpc_id,
            description="clusterctl: nodes of one cluster",
            tags=named(args.tags, f"{name}-nodes"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.security_group_id = group.id
        self.rules = [
            *self._among_nodes(name, args, group),
            *(self._ssh(name, args, group, cidr) for cidr in args.ssh_cidrs),
        ]
        self.register_outputs({})

    def _among_nodes(self, name: str, args: FirewallArgs, group: aws.ec2.SecurityGroup) -> list[pulumi.Resource]:
        """The rules for traffic that a node of the cluster begins."""
        child = pulumi.ResourceOptions(parent=self)
        return [
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-from-nodes",
                security_group_id=group.id,
                referenced_security_group_id=group.id,
                ip_protocol=ALL_PROTOCOLS,
                description="nodes to nodes",
                tags=named(args.tags, f"{name}-from-nodes"),
                opts=child,
            ),
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-to-nodes",
                security_group_id=group.id,
                referenced_security_group_id=group.id,
                ip_protocol=ALL_PROTOCOLS,
                description="nodes to nodes",
                tags=named(args.tags, f"{name}-to-nodes"),
                opts=child,
            ),
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-to-everywhere",
                security_group_id=group.id,
                cidr_ipv4=EVERYWHERE,
                ip_protocol=ALL_PROTOCOLS,
                description="nodes to everywhere",
                tags=named(args.tags, f"{name}-to-everywhere"),
                opts=child,
            ),
        ]

    def _ssh(
        self, name: str, args: FirewallArgs, group: aws.ec2.SecurityGroup, cidr: str
    ) -> aws.vpc.SecurityGroupIngressRule:
        child_name = f"{name}-ssh-{cidr.replace('/', '-')}"
        return aws.vpc.SecurityGroupIngressRule(
            child_name,
            security_group_id=group.id,
            cidr_ipv4=cidr,
            ip_protocol="tcp",
            from_port=SSH_PORT,
            to_port=SSH_PORT,
            description="SSH",
            tags=named(args.tags, child_name),
            opts=pulumi.ResourceOptions(parent=self),
        )
