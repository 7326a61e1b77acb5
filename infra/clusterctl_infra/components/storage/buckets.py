"""What nodes may do with buckets: list, read and, where the mount is writable, write below the mounted prefixes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any  # statements of a policy

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.partition import partition
from clusterctl_infra.plan.storage_model import BucketPlan

READING = ("s3:GetObject",)
WRITING = ("s3:PutObject", "s3:AbortMultipartUpload")
"""What mountpoint-s3 asks for beside reading (its doc/CONFIGURATION.md, "IAM permissions"; read 2026-11). Not the
right to delete: no mount of ours may (`--allow-delete`)."""


@dataclass(frozen=True, kw_only=True)
class BucketRightsArgs:
    """What the rights are made from; `role_name` is the nodes' role."""

    buckets: Sequence[BucketPlan]
    role_name: pulumi.Input[str]
    region: str


class BucketRights(pulumi.ComponentResource):
    """A policy of the nodes' role; nodes wait for `ready`."""

    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: BucketRightsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:BucketRights", name, None, opts)
        policy = aws.iam.RolePolicy(
            f"{name}-buckets",
            name="buckets",
            role=args.role_name,
            policy=json.dumps(policy_of(args.buckets, region=args.region)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.ready = [policy]
        self.register_outputs({})


def policy_of(buckets: Sequence[BucketPlan], *, region: str) -> dict[str, Any]:
    """The policy document for these buckets."""
    statements = [statement for bucket in buckets for statement in _statements(bucket, region)]
    statements += _key_statements(buckets)
    return {"Version": "2012-10-17", "Statement": statements}


def _statements(bucket: BucketPlan, region: str) -> list[dict[str, Any]]:
    arn = f"arn:{partition(region)}:s3:::{bucket.bucket}"
    listing: dict[str, Any] = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [arn]}
    if bucket.prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": [f"{bucket.prefix}*"]}}
    actions = [*READING, *(WRITING if bucket.writable else ())]
    return [listing, {"Effect": "Allow", "Action": actions, "Resource": [f"{arn}/{bucket.prefix}*"]}]


def _key_statements(buckets: Sequence[BucketPlan]) -> list[dict[str, Any]]:
    """Rights to the keys of SSE-KMS buckets, only through S3; uploads in parts need both rights (S3 User Guide, "Using
    server-side encryption with AWS KMS keys"; 2026-11)."""
    read = sorted({bucket.kms_key for bucket in buckets if bucket.kms_key is not None})
    written = sorted({bucket.kms_key for bucket in buckets if bucket.kms_key is not None and bucket.writable})
    by_s3 = {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com"}}
    return [
        {"Effect": "Allow", "Action": [action], "Resource": keys, "Condition": by_s3}
        for action, keys in (("kms:Decrypt", read), ("kms:GenerateDataKey", written))
        if keys
    ]
