"""What nodes may do in the account, and the key that EC2 knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.network import named

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}

SESSION_MANAGER = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": [
                "ssm:UpdateInstanceInformation",
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            ],
            "Resource": "*",
        }
    ],
}
"""What a node needs to be reached by Session Manager (Systems Manager user guide, "Session Manager permissions of an
existing IAM role"; 2026-11-23). AmazonSSMManagedInstanceCore, AWS's own policy, also reads every parameter."""


@dataclass(frozen=True, kw_only=True)
class AccessArgs:
    """What access is made from; `login_public_key` is None where people use keys of their own."""

    cluster_id: pulumi.Output[str]
    region: str
    login_public_key: pulumi.Output[str] | None
    with_session_manager: bool
    permissions_boundary: str | None
    """The ARN of a policy that bounds the role."""
    tags: pulumi.Output[Mapping[str, str]]


class Access(pulumi.ComponentResource):
    """The nodes' role, with no rights but those that Session Manager needs, if it is the way to nodes; and a key pair.

    Other components add policies to the role.
    """

    role_name: pulumi.Output[str]
    instance_profile_name: pulumi.Output[str]
    key_name: pulumi.Output[str] | None
    ready: list[pulumi.Resource]
    """What a node has to wait for."""

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:Access", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        account_wide_name = args.cluster_id.apply(lambda id: f"clusterctl-{id}")
        role = aws.iam.Role(
            f"{name}-node",
            name=account_wide_name,
            description="clusterctl: nodes of one cluster",
            assume_role_policy=json.dumps(TRUST),
            permissions_boundary=args.permissions_boundary,
            force_detach_policies=True,  # a policy that a killed run attached is in no state, and would hold the role
            tags=named(args.tags, f"{name}-node"),
            opts=child,
        )
        profile = aws.iam.InstanceProfile(
            f"{name}-node", name=account_wide_name, role=role.name, tags=named(args.tags, f"{name}-node"), opts=child
        )
        self.ready = [profile]
        if args.with_session_manager:
            policy = aws.iam.RolePolicy(
                f"{name}-session-manager",
                name=args.cluster_id.apply(lambda id: f"clusterctl-{id}-session-manager"),
                role=role.name,
                policy=json.dumps(SESSION_MANAGER),
                opts=child,
            )
            self.ready.append(policy)
        self.role_name = role.name
        self.instance_profile_name = profile.name
        self.key_name = None
        if args.login_public_key is not None:
            key = aws.ec2.KeyPair(
                f"{name}-login",
                key_name=account_wide_name,
                public_key=args.login_public_key,
                tags=named(args.tags, f"{name}-login"),
                opts=child,
            )
            self.key_name = key.key_name
        self.register_outputs({})
