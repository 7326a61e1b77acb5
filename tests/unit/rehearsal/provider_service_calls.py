"""Resource type → the calls of other services than EC2 that the Terraform AWS provider makes; see provider_calls.py."""

from __future__ import annotations

from typing import Any  # parameters as boto3 takes them

from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.deadline import ALARM, SCHEDULE, STATE_MACHINE
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY, ROLE_POLICY_ATTACHMENT

from tests.unit.rehearsal.provider_calls import ANSWERED, GROUP, HEX, SUBNET, TAG, Asked, by, ec2, other

ARN = "arn:aws:{service}:us-west-2:000000000000:{what}"
MACHINE = ARN.format(service="states", what="stateMachine:none")
NO_ALARM = ARN.format(service="cloudwatch", what="alarm:none")
TRUST = '{"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]}'
NOT_ROLE = {"RoleName": "none"}
EFS_ID = {"FileSystemId": f"fs-{HEX}"}


def iam(operation: str, **unknown: Any) -> Asked:
    return other("iam", operation, "NoSuchEntity", **unknown)


def sfn(operation: str, code: str, **unknown: Any) -> Asked:
    return other("stepfunctions", operation, code, **unknown)


def link(operation: str, **unknown: Any) -> Asked:
    return other("fsx", operation, "DataRepositoryAssociationNotFound", **unknown)


SERVICE_CALLS: dict[str, tuple[Asked, ...]] = {
    ROLE: (
        other("iam", "CreateRole", "MalformedPolicyDocument", RoleName="x", AssumeRolePolicyDocument="{"),
        iam("GetRole", **NOT_ROLE),
        iam("ListRolePolicies", **NOT_ROLE),
        iam("ListAttachedRolePolicies", **NOT_ROLE),
        iam("ListInstanceProfilesForRole", **NOT_ROLE),
        iam("ListRoleTags", **NOT_ROLE),
        iam("UpdateAssumeRolePolicy", **NOT_ROLE, PolicyDocument=TRUST),
        iam("UpdateRole", **NOT_ROLE, MaxSessionDuration=7200),
        iam("UpdateRoleDescription", **NOT_ROLE, Description="x"),
        iam("PutRolePermissionsBoundary", **NOT_ROLE, PermissionsBoundary="arn:aws:iam::aws:policy/ReadOnlyAccess"),
        iam("DeleteRolePermissionsBoundary", **NOT_ROLE),
        iam("TagRole", **NOT_ROLE, Tags=TAG),
        iam("UntagRole", **NOT_ROLE, TagKeys=["purpose"]),
        iam("DeleteRole", **NOT_ROLE),
    ),
    ROLE_POLICY: (
        iam("PutRolePolicy", **NOT_ROLE, PolicyName="x", PolicyDocument=TRUST),
        iam("GetRolePolicy", **NOT_ROLE, PolicyName="x"),
        iam("DeleteRolePolicy", **NOT_ROLE, PolicyName="x"),
    ),
    ROLE_POLICY_ATTACHMENT: (
        iam("AttachRolePolicy", **NOT_ROLE, PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess"),
        iam("ListAttachedRolePolicies", **NOT_ROLE),
        iam("DetachRolePolicy", **NOT_ROLE, PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess"),
    ),
    INSTANCE_PROFILE: (
        other("iam", "CreateInstanceProfile", ANSWERED, InstanceProfileName="x"),
        iam("GetInstanceProfile", InstanceProfileName="none"),
        iam("ListInstanceProfileTags", InstanceProfileName="none"),
        iam("AddRoleToInstanceProfile", InstanceProfileName="none", **NOT_ROLE),
        iam("RemoveRoleFromInstanceProfile", InstanceProfileName="none", **NOT_ROLE),
        iam("TagInstanceProfile", InstanceProfileName="none", Tags=TAG),
        iam("UntagInstanceProfile", InstanceProfileName="none", TagKeys=["purpose"]),
        iam("DeleteInstanceProfile", InstanceProfileName="none"),
    ),
    network.LUSTRE: (
        other("fsx", "CreateFileSystem", "BadRequest", FileSystemType="NONE", SubnetIds=[f"subnet-{HEX}"]),
        other("fsx", "DescribeFileSystems", "FileSystemNotFound", FileSystemIds=[f"fs-{HEX}"]),
        other("fsx", "UpdateFileSystem", "FileSystemNotFound", **EFS_ID, StorageCapacity=2400),
        other("fsx", "ListTagsForResource", "ResourceNotFound", ResourceARN=ARN.format(service="fsx", what="x")),
        other("fsx", "TagResource", "ResourceNotFound", ResourceARN=ARN.format(service="fsx", what="x"), Tags=TAG),
        other(
            *("fsx", "UntagResource", "ResourceNotFound"),
            ResourceARN=ARN.format(service="fsx", what="x"),
            TagKeys=["purpose"],
        ),
        other("fsx", "DeleteFileSystem", "FileSystemNotFound", **EFS_ID),
    ),
    network.LUSTRE_LINK: (
        other(
            *("fsx", "CreateDataRepositoryAssociation", "FileSystemNotFound"),
            **EFS_ID,
            FileSystemPath="/",
            DataRepositoryPath="s3://ours",
        ),
        link("DescribeDataRepositoryAssociations", AssociationIds=[f"dra-{HEX}"]),
        link("UpdateDataRepositoryAssociation", AssociationId=f"dra-{HEX}"),
        other("fsx", "ListTagsForResource", "ResourceNotFound", ResourceARN=ARN.format(service="fsx", what="y")),
        other("fsx", "TagResource", "ResourceNotFound", ResourceARN=ARN.format(service="fsx", what="y"), Tags=TAG),
        other(
            *("fsx", "UntagResource", "ResourceNotFound"),
            ResourceARN=ARN.format(service="fsx", what="y"),
            TagKeys=["purpose"],
        ),
        link("DeleteDataRepositoryAssociation", AssociationId=f"dra-{HEX}"),
    ),
    network.EFS: (
        other(
            "efs",
            "CreateFileSystem",
            "BadRequest",
            CreationToken="x",
            PerformanceMode="maxIO",
            ThroughputMode="elastic",
        ),
        other("efs", "DescribeFileSystems", "FileSystemNotFound", **EFS_ID),
        other("efs", "UpdateFileSystem", "FileSystemNotFound", **EFS_ID, ThroughputMode="elastic"),
        other("efs", "DescribeLifecycleConfiguration", "FileSystemNotFound", **EFS_ID),
        other("efs", "PutLifecycleConfiguration", "FileSystemNotFound", **EFS_ID, LifecyclePolicies=[]),
        other("efs", "ListTagsForResource", "FileSystemNotFound", ResourceId=f"fs-{HEX}"),
        other("efs", "TagResource", "FileSystemNotFound", ResourceId=f"fs-{HEX}", Tags=TAG),
        other("efs", "UntagResource", "FileSystemNotFound", ResourceId=f"fs-{HEX}", TagKeys=["purpose", "other"]),
        other("efs", "DeleteFileSystem", "FileSystemNotFound", **EFS_ID),
    ),
    network.MOUNT_TARGET: (
        other("efs", "CreateMountTarget", "FileSystemNotFound", **EFS_ID, **SUBNET),
        other("efs", "DescribeMountTargets", "MountTargetNotFound", MountTargetId=f"fsmt-{HEX}"),
        other("efs", "DescribeMountTargetSecurityGroups", "MountTargetNotFound", MountTargetId=f"fsmt-{HEX}"),
        other(
            "efs",
            "ModifyMountTargetSecurityGroups",
            "MountTargetNotFound",
            MountTargetId=f"fsmt-{HEX}",
            SecurityGroups=[GROUP],
        ),
        other("efs", "DeleteMountTarget", "MountTargetNotFound", MountTargetId=f"fsmt-{HEX}"),
    ),
    STATE_MACHINE: (
        sfn("ValidateStateMachineDefinition", ANSWERED, definition="{"),
        sfn("CreateStateMachine", "AccessDeniedException", name="x", definition="{", roleArn=MACHINE),
        sfn("DescribeStateMachine", "StateMachineDoesNotExist", stateMachineArn=MACHINE),
        sfn("ListStateMachineVersions", ANSWERED, stateMachineArn=MACHINE),
        sfn("UpdateStateMachine", "StateMachineDoesNotExist", stateMachineArn=MACHINE, definition="{}"),
        sfn("ListTagsForResource", "ResourceNotFound", resourceArn=MACHINE),
        sfn("TagResource", "ResourceNotFound", resourceArn=MACHINE, tags=[{"key": "a", "value": "b"}]),
        sfn("UntagResource", "ResourceNotFound", resourceArn=MACHINE, tagKeys=["a"]),
        sfn("DeleteStateMachine", ANSWERED, stateMachineArn=MACHINE),
    ),
    SCHEDULE: (
        other(
            *("scheduler", "CreateSchedule", "ValidationException"),
            Name="x",
            ScheduleExpression="none",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": MACHINE, "RoleArn": MACHINE},
        ),
        other("scheduler", "GetSchedule", "ResourceNotFoundException", Name="none"),
        other(
            *("scheduler", "UpdateSchedule", "ResourceNotFoundException"),
            Name="none",
            ScheduleExpression="at(2099-01-01T00:00:00)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": MACHINE, "RoleArn": MACHINE},
        ),
        other("scheduler", "DeleteSchedule", "ResourceNotFoundException", Name="none"),
    ),
    ALARM: (
        other("cloudwatch", "DescribeAlarms", ANSWERED, AlarmNames=["none"]),
        other("cloudwatch", "TagResource", "ResourceNotFoundException", ResourceARN=NO_ALARM, Tags=TAG),
        other("cloudwatch", "UntagResource", "ResourceNotFoundException", ResourceARN=NO_ALARM, TagKeys=["a"]),
        other("cloudwatch", "ListTagsForResource", "ResourceNotFoundException", ResourceARN=NO_ALARM),
        other("cloudwatch", "DeleteAlarms", "ResourceNotFound", AlarmNames=["none"]),
    ),
}
ACCOUNT: tuple[Asked, ...] = (
    other("sts", "GetCallerIdentity", ANSWERED),
    ec2("DescribeAccountAttributes", ANSWERED, AttributeNames=["supported-platforms"]),
    ec2("DescribeRegions", ANSWERED),
    ec2("DescribeInstanceTypeOfferings", ANSWERED, Filters=by("instance-type")),
    other("s3", "HeadBucket", "404", Bucket="none-of-ours"),
    other("s3", "GetBucketLocation", "NoSuchBucket", Bucket="none-of-ours"),
    other("ssm", "GetParameter", "ParameterNotFound", Name="/none"),
)
"""Of the provider itself, and of the look-ups that our programs ask it for."""

NOT_ASKED = {
    "cloudwatch:PutMetricAlarm": "names nothing that could be missing: the AWS CLI makes one in a test",
    "ec2:DescribeNetworkInterfaceAttribute": "EFS asks it in the caller's name, not the caller",
    "ec2:GetSecurityGroupsForVpc": "FSx asks it in the caller's name, not the caller",
    "iam:CreateServiceLinkedRole": "EFS and FSx ask it in the caller's name, not the caller",
    "iam:PassRole": "a right without a call",
    "s3:ListBucket": "the right to HeadBucket",
}
"""Rights of the provider's that are no call here, and why."""
