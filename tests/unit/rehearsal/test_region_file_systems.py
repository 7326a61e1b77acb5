"""FSx and EFS in the region: what AWS makes and refuses, what boto3 sees, and the folders that stand for contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # property values and answers

import pytest
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.lookups import look_up
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.settings import settings_from_rows
from clusterctl_rehearsal.region.types.network import (
    EFS,
    LUSTRE,
    LUSTRE_LINK,
    MOUNT_TARGET,
    SECURITY_GROUP,
    SUBNET,
    VPC,
)
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import REGION, TAGS, SmallRegion

TWO: dict[str, Any] = {"deploymentType": "PERSISTENT_2", "storageCapacity": 2400, "perUnitStorageThroughput": 125}


def open_to_itself(world: SmallRegion, group: Record, *, first: int = 988, last: int = 988) -> None:
    for token in (INGRESS_RULE, EGRESS_RULE):
        ports: dict[str, Any] = {"ipProtocol": "tcp", "fromPort": first, "toPort": last}
        world.make(token, securityGroupId=group.id, referencedSecurityGroupId=group.id, **ports)


def lustre(world: SmallRegion, **changes: Any) -> Record:
    """A file system in a network where port 988 is open."""
    _, subnet, group = world.network()
    open_to_itself(world, group)
    inputs: dict[str, Any] = {"subnetIds": subnet.id, "securityGroupIds": [group.id], "tags": TAGS, **TWO, **changes}
    return world.make(LUSTRE, **inputs)


def efs_with_target(world: SmallRegion) -> tuple[Record, Record]:
    _, subnet, group = world.network()
    made = world.make(EFS, throughputMode="elastic", tags=TAGS)
    return made, world.make(MOUNT_TARGET, fileSystemId=made.id, subnetId=subnet.id, securityGroups=[group.id])


def test_a_lustre_file_system_has_the_names_that_nodes_mount(world: SmallRegion) -> None:
    made = lustre(world)
    assert made.outputs["dnsName"] == f"{made.id}.fsx.{REGION}.amazonaws.com"
    assert len(made.outputs["mountName"]) == 8
    assert made.id.startswith("fs-")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"storageCapacity": 3600}, "BadRequest"),
        ({"storageCapacity": 1000}, "BadRequest"),
        ({"perUnitStorageThroughput": 300}, "InvalidPerUnitStorageThroughput"),
        ({"perUnitStorageThroughput": None}, "InvalidPerUnitStorageThroughput"),
        ({"deploymentType": "SCRATCH_2"}, "InvalidPerUnitStorageThroughput"),
        ({"deploymentType": "SCRATCH_9", "perUnitStorageThroughput": None}, "BadRequest"),
        ({"subnetIds": "subnet-0"}, "InvalidSubnetID.NotFound"),
    ],
)
def test_what_fsx_does_not_make_is_refused(world: SmallRegion, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(AwsError) as refused:
        lustre(world, **changes)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "changes",
    [
        {"storageCapacity": 1200},
        {"storageCapacity": 9600, "perUnitStorageThroughput": 1000},
        {"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": None},
        {"deploymentType": "SCRATCH_1", "storageCapacity": 3600, "perUnitStorageThroughput": None},
    ],
)
def test_what_fsx_makes_is_made(world: SmallRegion, changes: dict[str, Any]) -> None:
    assert lustre(world, **changes).is_live


@pytest.mark.parametrize(("first", "last"), [(1018, 1023), (989, 1023)])
def test_fsx_makes_nothing_where_port_988_is_closed(world: SmallRegion, first: int, last: int) -> None:
    _, subnet, group = world.network()
    open_to_itself(world, group, first=first, last=last)
    with pytest.raises(AwsError, match="do not permit Lustre LNET network traffic on port 988") as refused:
        world.make(LUSTRE, subnetIds=subnet.id, securityGroupIds=[group.id], **TWO)
    assert refused.value.code == "InvalidNetworkSettings"


def test_a_file_system_grows_and_never_shrinks(world: SmallRegion) -> None:
    made = lustre(world)
    grown = world.region.update(LUSTRE, made.id, {**made.inputs, "storageCapacity": 4800})
    assert grown.outputs["storageCapacity"] == 4800
    with pytest.raises(AwsError, match="cannot be decreased"):
        world.region.update(LUSTRE, made.id, {**made.inputs, "storageCapacity": 1200})


def linked(world: SmallRegion, system: Record, path: str, address: str) -> Record:
    inputs: dict[str, Any] = {"fileSystemId": system.id, "fileSystemPath": path, "dataRepositoryPath": address}
    return world.make(LUSTRE_LINK, tags=TAGS, s3={"autoImportPolicy": {"events": ["NEW"]}}, **inputs)


def test_no_two_links_of_a_file_system_overlap_and_it_has_eight(world: SmallRegion) -> None:
    made = lustre(world)
    for number in range(8):
        linked(world, made, f"/a{number}", f"s3://ours/{number}/")
    with pytest.raises(AwsError, match="at most 8"):
        linked(world, made, "/b", "s3://ours/b/")
    second = lustre(world, deploymentType="SCRATCH_2", perUnitStorageThroughput=None)
    linked(world, second, "/a", "s3://ours/a/")
    for path, address in (
        ("/", "s3://ours/b/"),
        ("/a/b", "s3://ours/b/"),
        ("/b", "s3://ours"),
        ("/b", "s3://ours/a/c/"),
    ):
        with pytest.raises(AwsError, match="overlaps"):
            linked(world, second, path, address)
    linked(world, second, "/ab", "s3://ours/ab/")


@pytest.mark.parametrize(
    ("changes", "bucket", "code"),
    [
        ({"deploymentType": "SCRATCH_1", "storageCapacity": 3600, "perUnitStorageThroughput": None}, "ours", "Unsupp"),
        ({}, "theirs", "BadRequest"),
    ],
)
def test_what_fsx_does_not_link_is_refused(world: SmallRegion, changes: dict[str, Any], bucket: str, code: str) -> None:
    world.behaviour.register({"buckets": ["ours"]})
    with pytest.raises(AwsError) as refused:
        linked(world, lustre(world, **changes), "/", f"s3://{bucket}")
    assert refused.value.code.startswith(code)


def test_boto3_makes_finds_changes_and_ends_links(world: SmallRegion) -> None:
    client, made = Client(world), lustre(world)
    asked = {"FileSystemId": made.id, "FileSystemPath": "/", "DataRepositoryPath": "s3://ours/a/"}
    tags = [{"Key": key, "Value": value} for key, value in TAGS.items()]
    events = {"AutoImportPolicy": {"Events": ["NEW"]}}
    link = client.call("fsx", "CreateDataRepositoryAssociation", **asked, S3=events, Tags=tags)["Association"]
    assert link["ResourceARN"].endswith(f":association/{made.id}/{link['AssociationId']}")
    id = {"AssociationId": link["AssociationId"]}
    client.call("fsx", "UpdateDataRepositoryAssociation", **id, S3={"AutoExportPolicy": {"Events": ["DELETED"]}})
    (row,) = client.call("fsx", "DescribeDataRepositoryAssociations", AssociationIds=[link["AssociationId"]])[
        "Associations"
    ]
    assert {key: row[key] for key in asked} == asked
    assert row["S3"] == {**events, "AutoExportPolicy": {"Events": ["DELETED"]}}
    client.call("fsx", "TagResource", ResourceARN=link["ResourceARN"], Tags=[{"Key": "a", "Value": "b"}])
    of_it = [{"Name": "file-system-id", "Values": [made.id]}]
    (row,) = client.call("fsx", "DescribeDataRepositoryAssociations", Filters=of_it)["Associations"]
    assert {tag["Key"]: tag["Value"] for tag in row["Tags"]} == {**TAGS, "a": "b"}
    assert client.call("fsx", "DeleteDataRepositoryAssociation", **id)["DeleteDataInFileSystem"] is False
    assert client.call("fsx", "DescribeDataRepositoryAssociations")["Associations"] == []


def test_a_link_ends_with_its_file_system(world: SmallRegion) -> None:
    made = lustre(world)
    linked(world, made, "/", "s3://ours")
    world.region.delete(LUSTRE, made.id)
    assert list(world.store.live(LUSTRE_LINK)) == []


def test_a_mount_target_is_one_in_a_zone_and_in_one_network(world: SmallRegion) -> None:
    made, target = efs_with_target(world)
    assert target.outputs["dnsName"] == made.outputs["dnsName"] == f"{made.id}.efs.{REGION}.amazonaws.com"
    subnet = target.inputs["subnetId"]
    with pytest.raises(AwsError, match="already exists in this AZ") as refused:
        world.make(MOUNT_TARGET, fileSystemId=made.id, subnetId=subnet)
    assert refused.value.code == "MountTargetConflict"
    vpc = world.make(VPC, cidrBlock="10.1.0.0/16")
    other = world.make(SUBNET, vpcId=vpc.id, cidrBlock="10.1.0.0/24", availabilityZone="us-west-2a")
    with pytest.raises(AwsError, match="not in the same VPC as existing mount targets"):
        world.make(MOUNT_TARGET, fileSystemId=made.id, subnetId=other.id)


def test_a_mount_target_takes_an_address_of_its_subnet(world: SmallRegion) -> None:
    _, first = efs_with_target(world)
    second_system = world.make(EFS)
    second = world.make(MOUNT_TARGET, fileSystemId=second_system.id, subnetId=first.inputs["subnetId"])
    assert first.outputs["ipAddress"] != second.outputs["ipAddress"]


def test_subnets_groups_and_file_systems_end_after_what_is_in_them(world: SmallRegion) -> None:
    made, target = efs_with_target(world)
    for token, id, code in (
        (EFS, made.id, "FileSystemInUse"),
        (SUBNET, target.inputs["subnetId"], "DependencyViolation"),
        (SECURITY_GROUP, target.inputs["securityGroups"][0], "DependencyViolation"),
    ):
        with pytest.raises(AwsError) as refused:
            world.region.delete(token, id)
        assert refused.value.code == code
    world.region.delete(MOUNT_TARGET, target.id)
    world.region.delete(EFS, made.id)


def test_a_folder_stands_for_the_contents_as_long_as_the_file_system_lives(world: SmallRegion, tmp_path: Path) -> None:
    shares = tmp_path / "rehearsal" / "shares"
    made = lustre(world)
    (shares / made.id / "checkpoint").write_text("step 7")
    world.region.update(LUSTRE, made.id, {**made.inputs, "storageCapacity": 4800})
    assert (shares / made.id / "checkpoint").read_text() == "step 7"
    world.region.delete(LUSTRE, made.id)
    assert list(shares.iterdir()) == []


def test_a_file_system_is_made_when_it_is_available(world: SmallRegion) -> None:
    world.behaviour.register({"storage_s": 300})
    began = world.now
    made = lustre(world)
    assert world.now >= began + 300
    assert Client(world).call("fsx", "DescribeFileSystems")["FileSystems"][0]["Lifecycle"] == "AVAILABLE"
    assert made.facts["available_at"] <= world.now


def test_one_that_is_being_made_shows_as_such_and_can_be_found(world: SmallRegion) -> None:
    """What a killed engine had asked for."""
    client = Client(world)
    made = lustre(world)
    world.store.put(made.changed(available_at=world.now + 60))
    (row,) = client.call("fsx", "DescribeFileSystems")["FileSystems"]
    assert (row["FileSystemId"], row["Lifecycle"], row["CreationTime"].timestamp()) == (
        made.id,
        "CREATING",
        made.created_at,
    )
    assert {tag["Key"]: tag["Value"] for tag in row["Tags"]} == TAGS


def test_boto3_finds_and_ends_file_systems_and_their_targets(world: SmallRegion) -> None:
    client = Client(world)
    made, target = efs_with_target(world)
    (row,) = client.call("efs", "DescribeFileSystems")["FileSystems"]
    assert (row["FileSystemId"], row["LifeCycleState"], row["NumberOfMountTargets"]) == (made.id, "available", 1)
    (found,) = client.call("efs", "DescribeMountTargets", FileSystemId=made.id)["MountTargets"]
    assert found["MountTargetId"] == target.id
    assert client.call("efs", "DeleteFileSystem", FileSystemId=made.id) == "FileSystemInUse"
    client.call("efs", "DeleteMountTarget", MountTargetId=target.id)
    client.call("efs", "DeleteFileSystem", FileSystemId=made.id)
    assert client.call("efs", "DeleteFileSystem", FileSystemId=made.id) == "FileSystemNotFound"
    assert client.call("efs", "DescribeFileSystems", FileSystemId=made.id) == "FileSystemNotFound"
    assert client.call("efs", "DescribeFileSystems")["FileSystems"] == []
    lustre_system = lustre(world)
    client.call("fsx", "DeleteFileSystem", FileSystemId=lustre_system.id)
    assert client.call("fsx", "DescribeFileSystems")["FileSystems"] == []


def test_what_efs_can_and_the_stand_in_cannot_is_said(world: SmallRegion) -> None:
    assert Client(world).call("efs", "DescribeAccessPoints") == "BadRequest"


@pytest.mark.parametrize(
    ("rows", "is_there"), [({}, True), ({"buckets": ["ml-datasets"]}, True), ({"buckets": ["x"]}, False)]
)
def test_every_bucket_is_there_unless_the_rehearsal_names_those_that_are(
    world: SmallRegion, rows: dict[str, Any], is_there: bool
) -> None:
    settings = settings_from_rows(rows, source="rehearsal.yaml")

    def asked() -> Any:
        given = {"bucket": "ml-datasets"}
        catalog = world.region.catalog
        return look_up("aws:s3/getBucket:getBucket", given, region=REGION, settings=settings, catalog=catalog)

    if is_there:
        assert asked()["bucketRegion"] == REGION
        return
    with pytest.raises(AwsError, match=r"reading S3 Bucket \(ml-datasets\)"):
        asked()
