"""Calls that clusterctl never makes: the region answers and refuses them as AWS does."""

from __future__ import annotations

import json
from typing import Any  # answers

import pytest
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types import network

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import REGION, TAGS, TRUST, SmallRegion

IMAGE = "ami-0123456789abcdef0"
TAGGED = [{"Key": "purpose", "Value": "test"}]


def tags_of(row: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags") or row.get("TagSet") or []}


def launch(client: Client, subnet: Record, **more: Any) -> Any:
    asked = {"ImageId": IMAGE, "InstanceType": "p5.48xlarge", "SubnetId": subnet.id, "MinCount": 1, "MaxCount": 1}
    return client.ec2("RunInstances", **{**asked, **more})


def living(world: SmallRegion) -> list[str]:
    return [row.id for row in world.store.live(network.INSTANCE)]


def test_one_request_starts_several_machines_and_a_repeated_one_starts_none(world: SmallRegion, client: Client) -> None:
    _, subnet, _ = world.network()
    made = launch(client, subnet, MinCount=2, MaxCount=3, ClientToken="token-1")
    assert [row["AmiLaunchIndex"] for row in made["Instances"]] == [0, 1, 2]
    again = launch(client, subnet, MinCount=2, MaxCount=3, ClientToken="token-1")
    ids = [row["InstanceId"] for row in again["Instances"]]
    assert ids == [row["InstanceId"] for row in made["Instances"]] == living(world)
    assert {row["ClientToken"] for row in again["Instances"]} == {"token-1"}


def test_a_token_belongs_to_its_request_and_is_not_used_anew(world: SmallRegion, client: Client) -> None:
    _, subnet, _ = world.network()
    (made,) = launch(client, subnet, ClientToken="token-1")["Instances"]
    assert launch(client, subnet, ClientToken="token-1", KeyName="other") == "IdempotentParameterMismatch"
    world.region.delete(network.INSTANCE, made["InstanceId"])
    assert launch(client, subnet, ClientToken="token-1") == "IdempotentInstanceTerminated"
    asked = {"SubnetId": subnet.id, "ClientToken": "token-2"}
    first = client.ec2("CreateNatGateway", **asked, AllocationId=client.ec2("AllocateAddress")["AllocationId"])
    other = client.ec2("AllocateAddress")["AllocationId"]
    assert client.ec2("CreateNatGateway", **asked, AllocationId=other) == "IdempotentParameterMismatch"
    assert [row["NatGatewayId"] for row in client.ec2("DescribeNatGateways")["NatGateways"]] == [
        first["NatGateway"]["NatGatewayId"]
    ]


@pytest.mark.parametrize(("least", "made"), [(1, 2), (2, 2), (3, 0)])
def test_as_many_machines_are_started_as_there_is_room_for_or_none(
    world: SmallRegion, client: Client, least: int, made: int
) -> None:
    world.behaviour.register({"capacity": {"p5.48xlarge": 2}})
    _, subnet, _ = world.network()
    answer = launch(client, subnet, MinCount=least, MaxCount=4)
    assert len(living(world)) == made
    assert answer == "InsufficientInstanceCapacity" if made == 0 else len(answer["Instances"]) == made


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"MinCount": 2, "MaxCount": 1}, "InvalidParameterValue"),
        ({"MinCount": 0, "MaxCount": 1}, "InvalidParameterValue"),
        ({"MinCount": 1, "MaxCount": 2, "PrivateIpAddress": "10.0.1.9"}, "InvalidParameterCombination"),
    ],
)
def test_counts_that_do_not_go_are_refused(
    world: SmallRegion, client: Client, asked: dict[str, Any], code: str
) -> None:
    _, subnet, _ = world.network()
    assert (launch(client, subnet, **asked), living(world)) == (code, [])


def test_a_machine_may_be_kept_from_being_terminated(world: SmallRegion, client: Client) -> None:
    _, subnet, _ = world.network()
    id = launch(client, subnet)["Instances"][0]["InstanceId"]
    client.ec2("ModifyInstanceAttribute", InstanceId=id, DisableApiTermination={"Value": True})
    shown = client.ec2("DescribeInstanceAttribute", InstanceId=id, Attribute="disableApiTermination")
    assert shown["DisableApiTermination"] == {"Value": True}
    assert client.ec2("TerminateInstances", InstanceIds=[id]) == "OperationNotPermitted"
    client.ec2("ModifyInstanceAttribute", InstanceId=id, DisableApiTermination={"Value": False})
    assert client.ec2("TerminateInstances", InstanceIds=[id])["TerminatingInstances"][0]["InstanceId"] == id


@pytest.mark.parametrize(
    ("attribute", "key", "value"),
    [
        ("instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior", {"Value": "stop"}),
        ("disableApiStop", "DisableApiStop", {"Value": False}),
        ("userData", "UserData", {"Value": "c2xvdCAw"}),
        ("instanceType", "InstanceType", {"Value": "p5.48xlarge"}),
        ("sourceDestCheck", "SourceDestCheck", {"Value": True}),
    ],
)
def test_attributes_of_a_machine_are_read_one_by_one(
    world: SmallRegion, client: Client, attribute: str, key: str, value: Any
) -> None:
    node = world.node()
    assert client.ec2("DescribeInstanceAttribute", InstanceId=node.id, Attribute=attribute)[key] == value


def test_a_machine_that_runs_passes_its_checks(world: SmallRegion, client: Client) -> None:
    node = world.node()
    passed = [{"Name": "instance-status.status", "Values": ["ok"]}]
    (row,) = client.ec2("DescribeInstanceStatus", InstanceIds=[node.id], Filters=passed)["InstanceStatuses"]
    assert (row["InstanceState"]["Name"], row["SystemStatus"]["Status"]) == ("running", "ok")
    world.region.delete(network.INSTANCE, node.id)
    assert client.ec2("DescribeInstanceStatus")["InstanceStatuses"] == []
    (row,) = client.ec2("DescribeInstanceStatus", IncludeAllInstances=True)["InstanceStatuses"]
    assert (row["InstanceState"]["Name"], row["InstanceStatus"]["Status"]) == ("terminated", "not-applicable")


def test_what_wants_a_stopped_machine_is_refused(world: SmallRegion, client: Client) -> None:
    node = world.node()
    changed = {"InstanceId": node.id, "InstanceType": {"Value": "p4d.24xlarge"}}
    assert client.ec2("ModifyInstanceAttribute", **changed) == "IncorrectInstanceState"
    assert client.ec2("StopInstances", InstanceIds=[node.id]) == "UnsupportedOperation"
    options = client.ec2("ModifyInstanceMetadataOptions", InstanceId=node.id, HttpTokens="required")
    assert options["InstanceMetadataOptions"]["HttpTokens"] == "required"


def test_the_life_of_a_network_interface(world: SmallRegion, client: Client) -> None:
    _, subnet, group = world.network()
    tags = [{"ResourceType": "network-interface", "Tags": TAGGED}]
    asked = {"SubnetId": subnet.id, "Groups": [group.id], "PrivateIpAddress": "10.0.1.9", "Description": "data"}
    id = client.ec2("CreateNetworkInterface", **asked, TagSpecifications=tags)["NetworkInterface"]["NetworkInterfaceId"]
    assert client.ec2("CreateNetworkInterface", **asked) == "InvalidIPAddress.InUse"
    assert client.ec2("DeleteSubnet", SubnetId=subnet.id) == "DependencyViolation"
    client.ec2("CreateTags", Resources=[id], Tags=[{"Key": "more", "Value": "1"}])
    client.ec2("ModifyNetworkInterfaceAttribute", NetworkInterfaceId=id, SourceDestCheck={"Value": False})
    (shown,) = client.ec2("DescribeNetworkInterfaces", NetworkInterfaceIds=[id])["NetworkInterfaces"]
    assert (shown["Status"], shown["Description"], shown["SourceDestCheck"]) == ("available", "data", False)
    assert tags_of(shown) == {"purpose": "test", "more": "1"}

    instance = launch(client, subnet)["Instances"][0]["InstanceId"]
    seat = {"NetworkInterfaceId": id, "InstanceId": instance}
    assert client.ec2("AttachNetworkInterface", **seat, DeviceIndex=0) == "InvalidParameterValue"
    tie = client.ec2("AttachNetworkInterface", **seat, DeviceIndex=1)["AttachmentId"]
    assert client.ec2("AttachNetworkInterface", **seat, DeviceIndex=2) == "InvalidNetworkInterface.InUse"
    assert client.ec2("DeleteNetworkInterface", NetworkInterfaceId=id) == "InvalidNetworkInterface.InUse"
    client.ec2("CreateTags", Resources=[id], Tags=[{"Key": "seat", "Value": "1"}])
    named = [{"Name": "attachment.attachment-id", "Values": [tie]}]
    (shown,) = client.ec2("DescribeNetworkInterfaces", Filters=named)["NetworkInterfaces"]
    assert (shown["Attachment"]["InstanceId"], shown["Attachment"]["DeviceIndex"]) == (instance, 1)

    primary = client.ec2("DescribeInstances", InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    (own, _) = primary["NetworkInterfaces"]
    assert (
        client.ec2("DetachNetworkInterface", AttachmentId=own["Attachment"]["AttachmentId"]) == "OperationNotPermitted"
    )
    world.region.delete(network.INSTANCE, instance)
    (shown,) = client.ec2("DescribeNetworkInterfaces", NetworkInterfaceIds=[id])["NetworkInterfaces"]
    assert (shown["Status"], tags_of(shown)) == ("available", {"purpose": "test", "more": "1", "seat": "1"})
    assert client.ec2("DeleteNetworkInterface", NetworkInterfaceId=id) != "InvalidNetworkInterface.InUse"
    assert list(world.store.live(network.NETWORK_INTERFACE)) == []


def test_an_interface_that_is_detached_is_there_alone(world: SmallRegion, client: Client) -> None:
    _, subnet, _ = world.network()
    made = client.ec2("CreateNetworkInterface", SubnetId=subnet.id, InterfaceType="efa-only")["NetworkInterface"]
    assert (made["InterfaceType"], made.get("PrivateIpAddress")) == ("efa-only", None)
    instance = launch(client, subnet)["Instances"][0]["InstanceId"]
    asked = {"NetworkInterfaceId": made["NetworkInterfaceId"], "InstanceId": instance, "DeviceIndex": 1}
    tie = client.ec2("AttachNetworkInterface", **asked)["AttachmentId"]
    client.ec2("DetachNetworkInterface", AttachmentId=tie)
    assert client.ec2("DetachNetworkInterface", AttachmentId=tie) == "InvalidAttachmentID.NotFound"
    assert [row.id for row in world.store.live(network.NETWORK_INTERFACE)] == [made["NetworkInterfaceId"]]


def test_the_life_of_a_volume(world: SmallRegion, client: Client) -> None:
    _, subnet, _ = world.network()
    tags = [{"ResourceType": "volume", "Tags": TAGGED}]
    asked = {"AvailabilityZone": "us-west-2b", "Size": 100, "VolumeType": "gp3", "TagSpecifications": tags}
    id = client.ec2("CreateVolume", **asked)["VolumeId"]
    away = client.ec2("CreateVolume", **{**asked, "AvailabilityZone": "us-west-2a"})["VolumeId"]
    instance = launch(client, subnet)["Instances"][0]["InstanceId"]
    place = {"InstanceId": instance, "Device": "/dev/sdf"}
    assert client.ec2("AttachVolume", VolumeId=away, **place) == "InvalidVolume.ZoneMismatch"
    assert client.ec2("AttachVolume", VolumeId=id, **place)["State"] == "attached"
    assert client.ec2("AttachVolume", VolumeId=id, **place) == "VolumeInUse"
    assert client.ec2("DeleteVolume", VolumeId=id) == "VolumeInUse"
    (shown,) = client.ec2("DescribeVolumes", VolumeIds=[id])["Volumes"]
    assert (shown["State"], shown["Size"], tags_of(shown)) == ("in-use", 100, {"purpose": "test"})
    of_machine = [{"Name": "attachment.instance-id", "Values": [instance]}]
    root = client.ec2("DescribeVolumes", Filters=of_machine)["Volumes"][0]["VolumeId"]
    assert client.ec2("DetachVolume", VolumeId=root) == "OperationNotPermitted"
    client.ec2("CreateTags", Resources=[root], Tags=TAGGED)
    assert tags_of(client.ec2("DescribeVolumes", VolumeIds=[root])["Volumes"][0]) == {"purpose": "test"}
    world.region.delete(network.INSTANCE, instance)
    assert client.ec2("DetachVolume", VolumeId=id) == "IncorrectState"
    client.ec2("DeleteVolume", VolumeId=id)
    assert [row["VolumeId"] for row in client.ec2("DescribeVolumes")["Volumes"]] == [away]


def test_what_aws_makes_with_a_vpc_is_shown_and_ends_with_it(world: SmallRegion, client: Client) -> None:
    vpc = client.ec2("CreateVpc", CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    (group,) = client.ec2("DescribeSecurityGroups", Filters=[*of_vpc, {"Name": "group-name", "Values": ["default"]}])[
        "SecurityGroups"
    ]
    main = {"Name": "association.main", "Values": ["true"]}
    (table,) = client.ec2("DescribeRouteTables", Filters=[*of_vpc, main])["RouteTables"]
    (acl,) = client.ec2("DescribeNetworkAcls", Filters=[*of_vpc, {"Name": "default", "Values": ["true"]}])[
        "NetworkAcls"
    ]
    assert acl["IsDefault"] is True
    assert client.ec2("DeleteSecurityGroup", GroupId=group["GroupId"]) == "CannotDelete"
    assert client.ec2("DeleteRouteTable", RouteTableId=table["RouteTableId"]) == "DependencyViolation"
    client.ec2("DeleteVpc", VpcId=vpc)
    assert client.ec2("DescribeSecurityGroups", Filters=of_vpc)["SecurityGroups"] == []


def test_what_a_program_changes_in_a_network_is_changed_in_place(world: SmallRegion, client: Client) -> None:
    vpc, subnet, group = world.network()
    gateways = [world.make(network.INTERNET_GATEWAY, vpcId=vpc.id, tags=TAGS) for _ in range(2)]
    tables = [world.make(network.ROUTE_TABLE, vpcId=vpc.id, tags=TAGS) for _ in range(2)]
    way = {"RouteTableId": tables[0].id, "DestinationCidrBlock": "0.0.0.0/0"}
    assert client.ec2("ReplaceRoute", **way, GatewayId=gateways[1].id) == "InvalidParameterValue"
    client.ec2("CreateRoute", **way, GatewayId=gateways[0].id)
    client.ec2("ReplaceRoute", **way, GatewayId=gateways[1].id)
    (shown,) = client.ec2("DescribeRouteTables", RouteTableIds=[tables[0].id])["RouteTables"]
    assert shown["Routes"][1]["GatewayId"] == gateways[1].id

    tie = client.ec2("AssociateRouteTable", RouteTableId=tables[0].id, SubnetId=subnet.id)["AssociationId"]
    new = client.ec2("ReplaceRouteTableAssociation", AssociationId=tie, RouteTableId=tables[1].id)["NewAssociationId"]
    (shown,) = client.ec2("DescribeRouteTables", RouteTableIds=[tables[1].id])["RouteTables"]
    assert [row["RouteTableAssociationId"] for row in shown["Associations"]] == [new]

    client.ec2("ModifySubnetAttribute", SubnetId=subnet.id, MapPublicIpOnLaunch={"Value": True})
    assert client.ec2("DescribeSubnets", SubnetIds=[subnet.id])["Subnets"][0]["MapPublicIpOnLaunch"] is True

    made = client.ec2(
        "CreateVpcEndpoint", VpcId=vpc.id, ServiceName="com.amazonaws.us-west-2.s3", RouteTableIds=[tables[0].id]
    )["VpcEndpoint"]["VpcEndpointId"]
    moved = {"AddRouteTableIds": [tables[1].id], "RemoveRouteTableIds": [tables[0].id]}
    client.ec2("ModifyVpcEndpoint", VpcEndpointId=made, **moved)
    (shown,) = client.ec2("DescribeVpcEndpoints", VpcEndpointIds=[made])["VpcEndpoints"]
    assert shown["RouteTableIds"] == [tables[1].id]
    (listed,) = client.ec2(
        "DescribePrefixLists", Filters=[{"Name": "prefix-list-name", "Values": ["com.amazonaws.us-west-2.s3"]}]
    )["PrefixLists"]
    assert listed["Cidrs"]

    everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    rule = client.ec2("AuthorizeSecurityGroupEgress", GroupId=group.id, IpPermissions=everything)["SecurityGroupRules"][
        0
    ]
    id = rule["SecurityGroupRuleId"]
    new_rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIpv4": "10.0.0.0/8", "Description": "inside"}
    changed = [{"SecurityGroupRuleId": id, "SecurityGroupRule": new_rule}]
    client.ec2("ModifySecurityGroupRules", GroupId=group.id, SecurityGroupRules=changed)
    (shown,) = client.ec2("DescribeSecurityGroupRules", SecurityGroupRuleIds=[id])["SecurityGroupRules"]
    assert {key: shown[key] for key in new_rule} == new_rule
    assert (
        client.ec2("RevokeSecurityGroupEgress", GroupId=group.id, IpPermissions=everything)
        == "InvalidPermission.NotFound"
    )
    inside = [
        {**{key: new_rule[key] for key in ("IpProtocol", "FromPort", "ToPort")}, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    ]
    client.ec2("RevokeSecurityGroupEgress", GroupId=group.id, IpPermissions=inside)
    assert client.ec2("DescribeSecurityGroups", GroupIds=[group.id])["SecurityGroups"][0]["IpPermissionsEgress"] == []


def test_a_template_has_versions_and_a_default_one(world: SmallRegion, client: Client) -> None:
    data = {"ImageId": IMAGE, "InstanceType": "p5.48xlarge"}
    made = client.ec2("CreateLaunchTemplate", LaunchTemplateName="node-0", LaunchTemplateData=data)["LaunchTemplate"]
    named = {"LaunchTemplateId": made["LaunchTemplateId"]}
    more = {"SourceVersion": "1", "LaunchTemplateData": {"InstanceType": "p4d.24xlarge"}}
    version = client.ec2("CreateLaunchTemplateVersion", **named, **more)["LaunchTemplateVersion"]
    assert (version["VersionNumber"], version["DefaultVersion"]) == (2, False)
    assert version["LaunchTemplateData"] == {**data, "InstanceType": "p4d.24xlarge"}
    assert client.ec2("ModifyLaunchTemplate", **named, DefaultVersion="3") == "InvalidLaunchTemplateId.VersionNotFound"
    client.ec2("ModifyLaunchTemplate", **named, DefaultVersion="2")
    (shown,) = client.ec2("DescribeLaunchTemplates", LaunchTemplateIds=[made["LaunchTemplateId"]])["LaunchTemplates"]
    assert (shown["DefaultVersionNumber"], shown["LatestVersionNumber"]) == (2, 2)


def test_a_reservation_and_a_role_and_a_schedule_are_changed_in_place(world: SmallRegion, client: Client) -> None:
    reserved = {"InstanceType": "p5.48xlarge", "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-west-2a"}
    id = client.ec2("CreateCapacityReservation", **reserved, InstanceCount=2)["CapacityReservation"][
        "CapacityReservationId"
    ]
    client.ec2("ModifyCapacityReservation", CapacityReservationId=id, InstanceCount=1)
    (shown,) = client.ec2("DescribeCapacityReservations", CapacityReservationIds=[id])["CapacityReservations"]
    assert shown["TotalInstanceCount"] == 1

    boundary = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    client.call("iam", "CreateRole", RoleName="node", AssumeRolePolicyDocument=TRUST)
    client.call("iam", "PutRolePermissionsBoundary", RoleName="node", PermissionsBoundary=boundary)
    client.call("iam", "UpdateRole", RoleName="node", Description="of nodes", MaxSessionDuration=7200)
    other = TRUST.replace("sts:AssumeRole", "sts:TagSession")
    client.call("iam", "UpdateAssumeRolePolicy", RoleName="node", PolicyDocument=other)
    role = client.call("iam", "GetRole", RoleName="node")["Role"]
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary
    assert (role["Description"], role["MaxSessionDuration"]) == ("of nodes", 7200)
    assert "sts%3ATagSession" in role["AssumeRolePolicyDocument"]
    client.call("iam", "DeleteRolePermissionsBoundary", RoleName="node")
    assert "PermissionsBoundary" not in client.call("iam", "GetRole", RoleName="node")["Role"]
    assert client.call("iam", "DeleteRolePermissionsBoundary", RoleName="node") == "NoSuchEntity"


def test_file_systems_are_tagged_and_changed(world: SmallRegion, client: Client) -> None:
    _, subnet, group = world.network()
    world.behaviour.register({"storage_s": 0})
    made = client.call("efs", "CreateFileSystem", CreationToken="home", Tags=TAGGED)
    assert client.call("efs", "CreateFileSystem", CreationToken="home") == "FileSystemAlreadyExists"
    id = made["FileSystemId"]
    client.call("efs", "TagResource", ResourceId=id, Tags=[{"Key": key, "Value": "1"} for key in ("a", "b", "c")])
    client.call("efs", "UntagResource", ResourceId=id, TagKeys=["a", "b"])
    assert tags_of(client.call("efs", "ListTagsForResource", ResourceId=id)) == {"purpose": "test", "c": "1"}
    policies = [{"TransitionToIA": "AFTER_30_DAYS"}]
    client.call("efs", "PutLifecycleConfiguration", FileSystemId=id, LifecyclePolicies=policies)
    shown = client.call("efs", "DescribeLifecycleConfiguration", FileSystemId=id)
    assert shown["LifecyclePolicies"] == policies
    assert (
        client.call("efs", "UpdateFileSystem", FileSystemId=id, ThroughputMode="elastic")["ThroughputMode"] == "elastic"
    )
    target = client.call("efs", "CreateMountTarget", FileSystemId=id, SubnetId=subnet.id)["MountTargetId"]
    client.call("efs", "ModifyMountTargetSecurityGroups", MountTargetId=target, SecurityGroups=[group.id])
    shown = client.call("efs", "DescribeMountTargetSecurityGroups", MountTargetId=target)
    assert shown["SecurityGroups"] == [group.id]


def test_objects_lie_where_nodes_find_them_when_they_first_look(world: SmallRegion, client: Client) -> None:
    world.behaviour.register({"buckets": ["ours"]})
    assert client.call("s3", "ListObjectsV2", Bucket="new-data") == "NoSuchBucket"
    here = {"LocationConstraint": REGION}
    client.call("s3", "CreateBucket", Bucket="new-data", CreateBucketConfiguration=here)
    assert (
        client.call("s3", "CreateBucket", Bucket="new-data", CreateBucketConfiguration=here)
        == "BucketAlreadyOwnedByYou"
    )
    assert client.call("s3", "CreateBucket", Bucket="No_Name") == "InvalidBucketName"
    for number in range(3):
        client.call("s3", "PutObject", Bucket="new-data", Key=f"shards/{number} a.bin", Body=b"data")
    assert (world.buckets / "new-data" / "shards" / "0 a.bin").read_bytes() == b"data"
    page = client.call("s3", "ListObjectsV2", Bucket="new-data", Prefix="shards/", MaxKeys=2)
    rest = client.call("s3", "ListObjectsV2", Bucket="new-data", ContinuationToken=page["NextContinuationToken"])
    assert [row["Key"] for row in [*page["Contents"], *rest["Contents"]]] == [f"shards/{n} a.bin" for n in range(3)]
    assert client.call("s3", "DeleteBucket", Bucket="new-data") == "BucketNotEmpty"
    for number in range(3):
        client.call("s3", "DeleteObject", Bucket="new-data", Key=f"shards/{number} a.bin")
    assert client.call("s3", "GetObject", Bucket="new-data", Key="shards/0 a.bin") == "NoSuchKey"
    assert client.call("s3", "PutObject", Bucket="new-data", Key="../../escape", Body=b"") == "NotImplemented"
    client.call("s3", "DeleteBucket", Bucket="new-data")
    assert client.call("s3", "HeadBucket", Bucket="new-data") == "404"
    assert json.dumps([row["Name"] for row in client.call("s3", "ListBuckets")["Buckets"]]) == '["ours"]'


def test_an_existing_network_has_what_aws_makes_with_each(world: SmallRegion, client: Client) -> None:
    """As a new one has: without them, lists of a region with an existing network would fail."""
    vpc = {"vpc_id": "vpc-0a1b2c3d4e5f67890", "vpc_cidr": "172.31.0.0/16", "zone": "us-west-2c"}
    subnet = {"subnet_id": "subnet-0a1b2c3d4e5f67890", "subnet_cidr": "172.31.16.0/26"}
    world.behaviour.register({"existing": {"networks": [{**vpc, **subnet}]}})
    world.region.add_existing()
    (group,) = client.ec2("DescribeSecurityGroups")["SecurityGroups"]
    assert (group["GroupName"], group["VpcId"]) == ("default", vpc["vpc_id"])
    (acl,) = client.ec2("DescribeNetworkAcls")["NetworkAcls"]
    assert [tie["SubnetId"] for tie in acl["Associations"]] == [subnet["subnet_id"]]
    tables = client.ec2("DescribeRouteTables")["RouteTables"]
    assert len({row["RouteTableId"] for row in tables}) == len(tables) == 2
    assert client.ec2("DeleteSecurityGroup", GroupId=group["GroupId"]) == "CannotDelete"


def test_a_call_that_is_signed_for_another_region_finds_nothing_of_this_one(world: SmallRegion, client: Client) -> None:
    vpc = client.ec2("CreateVpc", CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = client.ec2("CreateSubnet", VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    gateway = client.ec2("CreateInternetGateway")["InternetGateway"]["InternetGatewayId"]
    interface = client.ec2("CreateNetworkInterface", SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    home = client.call("efs", "CreateFileSystem", CreationToken="home")["FileSystemId"]
    target = client.call("efs", "CreateMountTarget", FileSystemId=home, SubnetId=subnet)["MountTargetId"]
    before = {row.id for row in world.store.live()}

    def elsewhere(service: str, operation: str, **parameters: str) -> Any:
        return client.call(service, operation, region="eu-west-1", **parameters)

    assert elsewhere("ec2", "CreateNetworkInterface", SubnetId=subnet) == "InvalidSubnetID.NotFound"
    assert (
        elsewhere("ec2", "DeleteNetworkInterface", NetworkInterfaceId=interface) == "InvalidNetworkInterfaceID.NotFound"
    )
    assert elsewhere("ec2", "DeleteSubnet", SubnetId=subnet) == "InvalidSubnetID.NotFound"
    assert elsewhere("ec2", "DeleteVpc", VpcId=vpc) == "InvalidVpcID.NotFound"
    assert elsewhere("ec2", "DeleteInternetGateway", InternetGatewayId=gateway) == "InvalidInternetGatewayID.NotFound"
    assert elsewhere("efs", "DeleteFileSystem", FileSystemId=home) == "FileSystemNotFound"
    assert elsewhere("efs", "DeleteMountTarget", MountTargetId=target) == "MountTargetNotFound"
    assert elsewhere("efs", "DescribeMountTargetSecurityGroups", MountTargetId=target) == "MountTargetNotFound"
    assert {row.id for row in world.store.live()} == before
