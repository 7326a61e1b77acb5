"""What nodes may do to end their cluster before its deadline: start the cluster's state machine, and nothing else.

They can always end their own machines by powering off, but not a reservation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.partition import partition
from clusterctl_infra.config.caps import CapsConfig
from clusterctl_infra.names import guard_name


@dataclass(frozen=True, kw_only=True)
class EarlyEndArgs:
    """What the right is made from; `role_name` is the nodes' role."""

    cluster_id: pulumi.Output[str]
    account_id: pulumi.Input[str]
    region: str
    role_name: pulumi.Input[str]


class EarlyEnd(pulumi.ComponentResource):
    """A policy of the nodes' role; nodes wait for `ready`."""

    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: EarlyEndArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:EarlyEnd", name, None, opts)
        ids = pulumi.Output.all(args.cluster_id, args.account_id)
        policy = aws.iam.RolePolicy(
            f"{name}-early-end",
            name="early-end",
            role=args.role_name,
            policy=ids.apply(lambda known: json.dumps(policy_of(known[0], region=args.region, account_id=known[1]))),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.ready = [policy]
        self.register_outputs({})


def is_needed(caps: CapsConfig) -> bool:
    """Whether a rule on the nodes may end the whole cluster: without one, they do not get this right."""
    return caps.idle is not None or caps.dead_man is not None


def policy_of(cluster_id: str, *, region: str, account_id: str) -> dict[str, object]:
    """The policy document that lets nodes start the cluster's state machine."""
    machine = f"arn:{partition(region)}:states:{region}:{account_id}:stateMachine:{guard_name(cluster_id)}"
    start = {"Effect": "Allow", "Action": "states:StartExecution", "Resource": machine}
    return {"Version": "2012-10-17", "Statement": [start]}
