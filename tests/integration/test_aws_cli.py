"""The rehearsed region as the AWS CLI sees it: each kind of resource that a cluster has is made, found, tagged, ended.

It gets the exports that `clusterctl rehearse env` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # answers of AWS's API

import pytest

from tests.integration.aws_cli import AwsCli, aws_cli

pytestmark = pytest.mark.awscli
IMAGE = "ami-0123456789abcdef0"
TAGS = "{Key=clusterctl:id,Value=0123456789ab},{Key=Name,Value=by-hand}"
RIGHTS = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
MACHINE = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 1, "End": True}}}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsCli]:
    with aws_cli(tmp_path_factory.mktemp("aws-cli")) as made:
        yield made


@pytest.fixture(scope="module")
def vpc(aws: AwsCli) -> Iterator[str]:
    made = aws("ec2", "create-vpc", "--cidr-block", "10.7.0.0/16", "--tag-specifications", tagged("vpc"))["Vpc"]
    assert made["Tags"] == [
        {"Key": "clusterctl:id", "Value": "0123456789ab"},
        {"Key": "Name", "Value": "by-hand"},
    ]
    found = aws("ec2", "describe-vpcs", "--filters", "Name=tag:clusterctl:id,Values=0123456789ab")["Vpcs"]
    assert found == [made]
    named = ("--vpc-id", made["VpcId"])
    aws("ec2", "modify-vpc-attribute", *named, "--enable-dns-hostnames")
    shown = aws("ec2", "describe-vpc-attribute", *named, "--attribute", "enableDnsHostnames")
    assert shown["EnableDnsHostnames"] == {"Value": True}
    yield made["VpcId"]
    aws("ec2", "delete-vpc", "--vpc-id", made["VpcId"])
    assert aws("ec2", "describe-vpcs")["Vpcs"] == []


@pytest.fixture(scope="module")
def subnet(aws: AwsCli, vpc: str) -> Iterator[str]:
    words = ("--vpc-id", vpc, "--cidr-block", "10.7.1.0/24", "--tag-specifications", tagged("subnet"))
    id = aws("ec2", "create-subnet", *words)["Subnet"]["SubnetId"]
    (found,) = aws("ec2", "describe-subnets", "--subnet-ids", id)["Subnets"]
    assert (found["CidrBlock"], found["VpcId"], found["AvailableIpAddressCount"]) == ("10.7.1.0/24", vpc, 251)
    yield id
    aws("ec2", "delete-subnet", "--subnet-id", id)


@pytest.fixture(scope="module")
def group(aws: AwsCli, vpc: str) -> Iterator[str]:
    words = ("--group-name", "nodes", "--description", "of nodes", "--vpc-id", vpc)
    id = aws("ec2", "create-security-group", *words)["GroupId"]
    yield id
    aws("ec2", "delete-security-group", "--group-id", id)


def tagged(kind: str) -> str:
    return f"ResourceType={kind},Tags=[{TAGS}]"


def tags_of(resource: dict[str, Any], key: str = "Tags") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in resource[key]}


def test_it_is_the_account_of_a_rehearsal(aws: AwsCli, vpc: str) -> None:
    assert vpc.startswith("vpc-")
    assert aws("sts", "get-caller-identity")["Account"] == "000000000000"
    name = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
    assert aws("ssm", "get-parameter", "--name", name)["Parameter"]["Value"].startswith("ami-")
    quota = aws.refusal("service-quotas", "get-service-quota", "--service-code", "ec2", "--quota-code", "L-1")
    assert "NoSuchResourceException" in quota
    assert aws.run("s3api", "head-bucket", "--bucket", "data")[0] == 0


def test_a_network_with_its_ways_out(aws: AwsCli, vpc: str, subnet: str) -> None:
    gateway = aws("ec2", "create-internet-gateway", "--tag-specifications", tagged("internet-gateway"))
    gateway_id = gateway["InternetGateway"]["InternetGatewayId"]
    aws("ec2", "attach-internet-gateway", "--internet-gateway-id", gateway_id, "--vpc-id", vpc)
    (found,) = aws("ec2", "describe-internet-gateways", "--internet-gateway-ids", gateway_id)["InternetGateways"]
    assert found["Attachments"] == [{"State": "available", "VpcId": vpc}]

    address = aws("ec2", "allocate-address", "--domain", "vpc", "--tag-specifications", tagged("elastic-ip"))
    words = ("--subnet-id", subnet, "--allocation-id", address["AllocationId"])
    nat = aws("ec2", "create-nat-gateway", *words)["NatGateway"]["NatGatewayId"]
    (found,) = aws("ec2", "describe-nat-gateways", "--nat-gateway-ids", nat)["NatGateways"]
    assert (found["VpcId"], found["NatGatewayAddresses"][0]["PublicIp"]) == (vpc, address["PublicIp"])
    in_use = aws.refusal("ec2", "release-address", "--allocation-id", address["AllocationId"])
    assert "InvalidIPAddress.InUse" in in_use

    table = aws("ec2", "create-route-table", "--vpc-id", vpc)["RouteTable"]["RouteTableId"]
    everywhere = ("--route-table-id", table, "--destination-cidr-block", "0.0.0.0/0")
    assert aws("ec2", "create-route", *everywhere, "--nat-gateway-id", nat) == {"Return": True}
    assert "RouteAlreadyExists" in aws.refusal("ec2", "create-route", *everywhere, "--nat-gateway-id", nat)
    tie = aws("ec2", "associate-route-table", "--route-table-id", table, "--subnet-id", subnet)["AssociationId"]
    (found,) = aws("ec2", "describe-route-tables", "--filters", f"Name=association.subnet-id,Values={subnet}")[
        "RouteTables"
    ]
    assert [route.get("NatGatewayId") for route in found["Routes"]] == [None, nat]

    endpoint = aws(
        *("ec2", "create-vpc-endpoint", "--vpc-id", vpc, "--service-name", "com.amazonaws.us-west-2.s3"),
        *("--route-table-ids", table),
    )["VpcEndpoint"]["VpcEndpointId"]
    assert aws("ec2", "describe-vpc-endpoints", "--vpc-endpoint-ids", endpoint)["VpcEndpoints"][0]["VpcId"] == vpc

    aws("ec2", "delete-vpc-endpoints", "--vpc-endpoint-ids", endpoint)
    aws("ec2", "disassociate-route-table", "--association-id", tie)
    aws("ec2", "delete-route", *everywhere)
    aws("ec2", "delete-route-table", "--route-table-id", table)
    aws("ec2", "delete-nat-gateway", "--nat-gateway-id", nat)
    aws("ec2", "release-address", "--allocation-id", address["AllocationId"])
    assert aws("ec2", "describe-addresses")["Addresses"] == []
    aws("ec2", "detach-internet-gateway", "--internet-gateway-id", gateway_id, "--vpc-id", vpc)
    aws("ec2", "delete-internet-gateway", "--internet-gateway-id", gateway_id)


def test_a_security_group_and_its_rules(aws: AwsCli, vpc: str, group: str) -> None:
    words = ("--group-id", group, "--protocol", "tcp", "--port", "22", "--cidr", "203.0.113.0/24")
    (rule,) = aws("ec2", "authorize-security-group-ingress", *words)["SecurityGroupRules"]
    assert "InvalidPermission.Duplicate" in aws.refusal("ec2", "authorize-security-group-ingress", *words)
    itself = ("--group-id", group, "--protocol", "all", "--source-group", group)
    aws("ec2", "authorize-security-group-ingress", *itself)
    (found,) = aws("ec2", "describe-security-groups", "--group-ids", group)["SecurityGroups"]
    ssh, all_of_it = found["IpPermissions"]
    assert (ssh["FromPort"], ssh["IpRanges"]) == (22, [{"CidrIp": "203.0.113.0/24"}])
    assert all_of_it["UserIdGroupPairs"][0]["GroupId"] == group
    assert [row["IpRanges"] for row in found["IpPermissionsEgress"]] == [[{"CidrIp": "0.0.0.0/0"}]]
    rules = aws("ec2", "describe-security-group-rules", "--filters", f"Name=group-id,Values={group}")
    assert len(rules["SecurityGroupRules"]) == 3
    wanted = ("--group-id", group, "--security-group-rule-ids", rule["SecurityGroupRuleId"])
    aws("ec2", "revoke-security-group-ingress", *wanted)
    aws("ec2", "create-tags", "--resources", group, vpc, "--tags", "Key=purpose,Value=test")
    (found,) = aws("ec2", "describe-security-groups", "--group-ids", group)["SecurityGroups"]
    assert (len(found["IpPermissions"]), tags_of(found)) == (1, {"purpose": "test"})
    aws("ec2", "delete-tags", "--resources", group, vpc, "--tags", "Key=purpose")
    assert aws("ec2", "describe-tags", "--filters", f"Name=resource-id,Values={vpc}")["Tags"] == [
        {"ResourceId": vpc, "ResourceType": "vpc", "Key": "clusterctl:id", "Value": "0123456789ab"},
        {"ResourceId": vpc, "ResourceType": "vpc", "Key": "Name", "Value": "by-hand"},
    ]


def test_a_machine_on_reserved_capacity(aws: AwsCli, subnet: str, group: str) -> None:
    words = ("--group-name", "close", "--strategy", "cluster")
    assert aws("ec2", "create-placement-group", *words)["PlacementGroup"]["State"] == "available"
    reserved = aws(
        *("ec2", "create-capacity-reservation", "--instance-type", "p5.48xlarge", "--instance-platform", "Linux/UNIX"),
        *("--availability-zone", "us-west-2a", "--instance-count", "2", "--instance-match-criteria", "targeted"),
        *("--end-date-type", "unlimited", "--tag-specifications", tagged("capacity-reservation")),
    )["CapacityReservation"]["CapacityReservationId"]
    card = {"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group], "PrivateIpAddress": "10.7.1.8"}
    data = {
        "ImageId": IMAGE,
        "InstanceType": "p5.48xlarge",
        "NetworkInterfaces": [card],
        "Placement": {"GroupName": "close"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reserved}},
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "slot", "Value": "0"}]}],
    }
    named = ("--launch-template-name", "node-0", "--launch-template-data", json.dumps(data))
    template = aws("ec2", "create-launch-template", *named)["LaunchTemplate"]["LaunchTemplateId"]
    (found,) = aws("ec2", "describe-launch-templates", "--launch-template-ids", template)["LaunchTemplates"]
    assert (found["LaunchTemplateName"], found["LatestVersionNumber"]) == ("node-0", 1)
    versions = ("--launch-template-id", template, "--versions", "$Latest")
    (found,) = aws("ec2", "describe-launch-template-versions", *versions)["LaunchTemplateVersions"]
    assert (found["VersionNumber"], found["LaunchTemplateData"]) == (1, data)

    launch = ("--launch-template", f"LaunchTemplateId={template}", "--tag-specifications", tagged("instance"))
    (made,) = aws("ec2", "run-instances", *launch)["Instances"]
    of_cluster = ("--filters", "Name=tag:clusterctl:id,Values=0123456789ab")
    (found,) = aws("ec2", "describe-instances", *of_cluster)["Reservations"][0]["Instances"]
    assert (found["InstanceId"], found["PrivateIpAddress"]) == (made["InstanceId"], "10.7.1.8")
    assert (found["State"]["Name"], tags_of(found)["slot"]) == ("running", "0")
    cards = aws("ec2", "describe-network-interfaces", "--filters", f"Name=group-id,Values={group}")
    assert [row["PrivateIpAddress"] for row in cards["NetworkInterfaces"]] == ["10.7.1.8"]
    disks = f"Name=attachment.instance-id,Values={made['InstanceId']}"
    assert len(aws("ec2", "describe-volumes", "--filters", disks)["Volumes"]) == 1
    (place,) = aws("ec2", "describe-capacity-reservations")["CapacityReservations"]
    assert (place["TotalInstanceCount"], place["AvailableInstanceCount"]) == (2, 1)

    aws("ec2", "terminate-instances", "--instance-ids", made["InstanceId"])
    aws("ec2", "wait", "instance-terminated", "--instance-ids", made["InstanceId"])
    aws("ec2", "delete-launch-template", "--launch-template-id", template)
    assert aws("ec2", "cancel-capacity-reservation", "--capacity-reservation-id", reserved) == {"Return": True}
    aws("ec2", "delete-placement-group", "--group-name", "close")


def test_several_machines_and_what_a_client_hangs_on_them(aws: AwsCli, subnet: str, group: str) -> None:
    """Interfaces and volumes, which clusterctl makes only with machines."""
    machines = ("--image-id", IMAGE, "--instance-type", "p5.48xlarge", "--subnet-id", subnet, "--count", "2:3")
    words = ("ec2", "run-instances", *machines, "--client-token", "twice", "--security-group-ids", group)
    made = [row["InstanceId"] for row in aws(*words)["Instances"]]
    assert [row["InstanceId"] for row in aws(*words)["Instances"]] == made
    assert "IdempotentParameterMismatch" in aws.refusal(*words, "--user-data", "other")
    named = ("--instance-id", made[0])
    read = ("ec2", "describe-instance-attribute", *named, "--attribute", "disableApiTermination")
    assert aws(*read)["DisableApiTermination"] == {"Value": False}

    card = aws("ec2", "create-network-interface", "--subnet-id", subnet, "--groups", group)["NetworkInterface"]
    own = ("--network-interface-id", card["NetworkInterfaceId"])
    tie = aws("ec2", "attach-network-interface", *own, *named, "--device-index", "1")["AttachmentId"]
    assert "InvalidNetworkInterface.InUse" in aws.refusal("ec2", "delete-network-interface", *own)
    aws("ec2", "detach-network-interface", "--attachment-id", tie)
    aws("ec2", "wait", "network-interface-available", "--network-interface-ids", card["NetworkInterfaceId"])
    aws("ec2", "delete-network-interface", *own)

    disk = ("--availability-zone", "us-west-2a", "--size", "100", "--tag-specifications", tagged("volume"))
    volume = aws("ec2", "create-volume", *disk)["VolumeId"]
    aws("ec2", "attach-volume", "--volume-id", volume, *named, "--device", "/dev/sdf")
    aws("ec2", "wait", "volume-in-use", "--volume-ids", volume)
    assert "VolumeInUse" in aws.refusal("ec2", "delete-volume", "--volume-id", volume)
    aws("ec2", "terminate-instances", "--instance-ids", *made)
    aws("ec2", "wait", "instance-terminated", "--instance-ids", *made)
    aws("ec2", "wait", "volume-available", "--volume-ids", volume)
    aws("ec2", "delete-volume", "--volume-id", volume)


def test_what_a_program_changes_later(aws: AwsCli, vpc: str, subnet: str, group: str) -> None:
    aws("ec2", "modify-subnet-attribute", "--subnet-id", subnet, "--map-public-ip-on-launch")
    assert aws("ec2", "describe-subnets", "--subnet-ids", subnet)["Subnets"][0]["MapPublicIpOnLaunch"] is True
    aws("ec2", "modify-subnet-attribute", "--subnet-id", subnet, "--no-map-public-ip-on-launch")
    (default,) = aws("ec2", "describe-security-groups", "--filters", "Name=group-name,Values=default")["SecurityGroups"]
    assert "CannotDelete" in aws.refusal("ec2", "delete-security-group", "--group-id", default["GroupId"])
    everywhere = ("--group-id", group, "--ip-permissions", "IpProtocol=-1,IpRanges=[{CidrIp=0.0.0.0/0}]")
    aws("ec2", "revoke-security-group-egress", *everywhere)
    assert "InvalidPermission.NotFound" in aws.refusal("ec2", "revoke-security-group-egress", *everywhere)
    aws("ec2", "authorize-security-group-egress", *everywhere)
    of_vpc = ("--filters", f"Name=vpc-id,Values={vpc}", "Name=association.main,Values=true")
    assert len(aws("ec2", "describe-route-tables", *of_vpc)["RouteTables"]) == 1


def test_a_bucket_and_what_is_in_it(aws: AwsCli, tmp_path: Path) -> None:
    """By the high-level commands, too: a body, a key with a space, and a page are signed in S3's own way."""
    shard = tmp_path / "shard 0.bin"
    shard.write_bytes(b"0123456789" * 1000)
    where = ("--create-bucket-configuration", "LocationConstraint=us-west-2")
    aws("s3api", "create-bucket", "--bucket", "new-data", *where)
    assert aws.run("s3", "cp", "--quiet", str(shard), "s3://new-data/train/shard 0.bin")[0] == 0
    listed = aws("s3api", "list-objects-v2", "--bucket", "new-data", "--prefix", "train/")["Contents"]
    assert [(row["Key"], row["Size"]) for row in listed] == [("train/shard 0.bin", 10_000)]
    back = tmp_path / "back.bin"
    named = ("--bucket", "new-data", "--key", "train/shard 0.bin")
    assert aws("s3api", "get-object", *named, str(back))["ContentLength"] == 10_000
    assert back.read_bytes() == shard.read_bytes()
    assert "BucketNotEmpty" in aws.refusal("s3api", "delete-bucket", "--bucket", "new-data")
    aws("s3api", "delete-object", *named)
    assert "NoSuchKey" in aws.refusal("s3api", "get-object", *named, str(back))
    aws("s3api", "delete-bucket", "--bucket", "new-data")


def test_a_role_its_policies_and_its_profile(aws: AwsCli) -> None:
    trust = trusted_by("ec2.amazonaws.com")
    words = ("--assume-role-policy-document", trust, "--tags", "Key=clusterctl:id,Value=0123456789ab")
    role = aws("iam", "create-role", "--role-name", "node", *words)["Role"]
    assert "EntityAlreadyExists" in aws.refusal("iam", "create-role", "--role-name", "node", *words)
    aws("iam", "tag-role", "--role-name", "node", "--tags", "Key=purpose,Value=test")
    found = aws("iam", "get-role", "--role-name", "node")["Role"]
    assert (found["Arn"], tags_of(found)["purpose"]) == (role["Arn"], "test")
    assert found["AssumeRolePolicyDocument"] == json.loads(trust)
    aws("iam", "untag-role", "--role-name", "node", "--tag-keys", "purpose")

    inline = ("--role-name", "node", "--policy-name", "data")
    aws("iam", "put-role-policy", *inline, "--policy-document", json.dumps(RIGHTS))
    assert aws("iam", "get-role-policy", *inline)["PolicyDocument"] == RIGHTS
    attached = ("--role-name", "node", "--policy-arn", "arn:aws:iam::aws:policy/ReadOnlyAccess")
    aws("iam", "attach-role-policy", *attached)
    listed = aws("iam", "list-attached-role-policies", "--role-name", "node")["AttachedPolicies"]
    assert [row["PolicyName"] for row in listed] == ["ReadOnlyAccess"]

    aws("iam", "create-instance-profile", "--instance-profile-name", "nodes")
    member = ("--instance-profile-name", "nodes", "--role-name", "node")
    aws("iam", "add-role-to-instance-profile", *member)
    found = aws("iam", "get-instance-profile", "--instance-profile-name", "nodes")["InstanceProfile"]
    assert [row["RoleName"] for row in found["Roles"]] == ["node"]
    assert "DeleteConflict" in aws.refusal("iam", "delete-role", "--role-name", "node")

    aws("iam", "remove-role-from-instance-profile", *member)
    aws("iam", "delete-instance-profile", "--instance-profile-name", "nodes")
    aws("iam", "detach-role-policy", *attached)
    aws("iam", "delete-role-policy", *inline)
    aws("iam", "delete-role", "--role-name", "node")
    assert "NoSuchEntity" in aws.refusal("iam", "get-role", "--role-name", "node")


def test_what_ends_a_cluster_from_outside(aws: AwsCli) -> None:
    """A state machine, the schedule that starts it, and the alarm on its failure."""
    roles = {}
    for service in ("states", "scheduler"):
        trust = trusted_by(f"{service}.amazonaws.com")
        made = aws("iam", "create-role", "--role-name", service, "--assume-role-policy-document", trust)
        roles[service] = made["Role"]["Arn"]
    definition = ("--definition", json.dumps(MACHINE), "--role-arn", roles["states"])
    arn = aws("stepfunctions", "create-state-machine", "--name", "end", *definition)["stateMachineArn"]
    found = aws("stepfunctions", "describe-state-machine", "--state-machine-arn", arn)
    assert (json.loads(found["definition"]), found["status"]) == (MACHINE, "ACTIVE")
    aws("stepfunctions", "tag-resource", "--resource-arn", arn, "--tags", "key=purpose,value=test")
    tags = aws("stepfunctions", "list-tags-for-resource", "--resource-arn", arn)["tags"]
    assert tags == [{"key": "purpose", "value": "test"}]

    target = json.dumps({"Arn": arn, "RoleArn": roles["scheduler"], "Input": "{}"})
    at = ("--schedule-expression", "at(2099-01-31T12:00:00)", "--flexible-time-window", "Mode=OFF")
    aws("scheduler", "create-schedule", "--name", "deadline", *at, "--target", target)
    found = aws("scheduler", "get-schedule", "--name", "deadline")
    assert (found["ScheduleExpression"], found["Target"]["Arn"]) == (at[1], arn)
    assert [row["Name"] for row in aws("scheduler", "list-schedules")["Schedules"]] == ["deadline"]

    aws(
        *("cloudwatch", "put-metric-alarm", "--alarm-name", "failed", "--namespace", "AWS/States"),
        *("--metric-name", "ExecutionsFailed", "--dimensions", f"Name=StateMachineArn,Value={arn}"),
        *("--statistic", "Sum", "--period", "60", "--evaluation-periods", "1", "--threshold", "1"),
        *("--comparison-operator", "GreaterThanOrEqualToThreshold", "--treat-missing-data", "ignore"),
    )
    (alarm,) = aws("cloudwatch", "describe-alarms")["MetricAlarms"]
    assert (alarm["AlarmName"], alarm["StateValue"]) == ("failed", "INSUFFICIENT_DATA")

    aws("cloudwatch", "delete-alarms", "--alarm-names", "failed")
    aws("scheduler", "delete-schedule", "--name", "deadline")
    assert "ResourceNotFoundException" in aws.refusal("scheduler", "get-schedule", "--name", "deadline")
    aws("stepfunctions", "delete-state-machine", "--state-machine-arn", arn)
    for service in roles:
        aws("iam", "delete-role", "--role-name", service)


def test_file_systems(aws: AwsCli, subnet: str, group: str) -> None:
    itself = ("--group-id", group, "--protocol", "tcp", "--port", "988", "--source-group", group)
    (rule,) = aws("ec2", "authorize-security-group-ingress", *itself)["SecurityGroupRules"]
    lustre = aws(
        *("fsx", "create-file-system", "--file-system-type", "LUSTRE", "--storage-capacity", "1200"),
        *("--subnet-ids", subnet, "--security-group-ids", group),
        *("--lustre-configuration", "DeploymentType=SCRATCH_2", "--tags", "Key=Name,Value=scratch"),
    )["FileSystem"]
    aws("fsx", "tag-resource", "--resource-arn", lustre["ResourceARN"], "--tags", "Key=purpose,Value=test")
    named = ("--file-system-ids", lustre["FileSystemId"])
    (found,) = aws("fsx", "describe-file-systems", *named)["FileSystems"]
    assert (found["StorageCapacity"], tags_of(found)) == (1200, {"Name": "scratch", "purpose": "test"})
    aws("fsx", "delete-file-system", "--file-system-id", lustre["FileSystemId"])
    assert "FileSystemNotFound" in aws.refusal("fsx", "describe-file-systems", *named)
    aws(
        *("ec2", "revoke-security-group-ingress", "--group-id", group),
        *("--security-group-rule-ids", rule["SecurityGroupRuleId"]),
    )

    efs = aws("efs", "create-file-system", "--creation-token", "one", "--tags", "Key=Name,Value=home")["FileSystemId"]
    words = ("--file-system-id", efs, "--subnet-id", subnet, "--security-groups", group)
    target = aws("efs", "create-mount-target", *words)["MountTargetId"]
    (found,) = aws("efs", "describe-file-systems", "--file-system-id", efs)["FileSystems"]
    assert (found["NumberOfMountTargets"], tags_of(found)) == (1, {"Name": "home"})
    assert "FileSystemInUse" in aws.refusal("efs", "delete-file-system", "--file-system-id", efs)
    aws("efs", "delete-mount-target", "--mount-target-id", target)
    aws("efs", "delete-file-system", "--file-system-id", efs)


def trusted_by(service: str) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
