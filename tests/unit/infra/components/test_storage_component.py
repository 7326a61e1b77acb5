"""The Storage component: which resources it makes, what waits for what, and what nodes are told."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any  # configurations as YAML gives them

import pulumi
import pytest
from clusterctl_bootstrap.node_plan import MountPlan
from clusterctl_infra.components.lookups import bucket_regions
from clusterctl_infra.components.refusal import PlanRefused
from clusterctl_infra.components.storage.buckets import policy_of
from clusterctl_infra.components.storage.storage import Storage, StorageArgs
from clusterctl_infra.config.fields import KMS_EXAMPLE
from clusterctl_infra.config.storage_rules import BUCKET_KEYS_LIMIT, MOUNTS_LIMIT
from clusterctl_infra.plan.storage import storage_plans
from clusterctl_infra.plan.storage_model import BucketPlan, EfsPlan, LustrePlan

from tests.unit.infra.components.recorded_program import (
    BUCKET_LOOKUP,
    EFS,
    INSTANCE,
    LUSTRE,
    Recording,
    as_text,
    cluster_program,
    graph,
    record,
    short,
)
from tests.unit.infra.components.write_golden import GOLDEN_STORAGE, with_storage
from tests.unit.infra.plan.plan_cases import CATALOG, a_config

INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
MOUNT_TARGET = "aws:efs/mountTarget:MountTarget"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ADOPTED = "fs-0a1b2c3d4e5f67890"
SHARED: dict[str, Any] = {"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "throughput": 250}}
SCRATCH: dict[str, Any] = {
    "mount": "/mnt/scratch",
    "fsx-lustre": {"size": "1200GiB", "type": "scratch", "on_delete": "delete"},
}
WORK: dict[str, Any] = {"mount": "/work", "efs": {}}
DATA: dict[str, Any] = {"mount": "/data", "s3": {"bucket": "ml-datasets", "prefix": "imagenet/"}}
LINKED: dict[str, Any] = {
    "mount": "/shared",
    "fsx-lustre": {
        "size": "4800GiB",
        "data_repository": {
            "bucket": "ml-datasets",
            "path": "/sets",
            "imports": ["new"],
            "exports": ["new", "deleted"],
        },
    },
}
LOCAL: dict[str, Any] = {"mount": "/local", "nvme": {"level": "single"}}


def storage_program(*storage: dict[str, Any]) -> Callable[[], Any]:
    """A stack with nothing but storage, which exports what nodes are told."""

    def program() -> Any:
        made = Storage(
            "train",
            StorageArgs(
                plan=storage_plans(a_config(storage=list(storage)), CATALOG),
                region="us-west-2",
                bucket_regions={"ml-datasets": pulumi.Output.from_input("eu-west-1")},
                vpc_id="vpc",
                subnet_id="services",
                node_group_id="nodes",
                role_name="role",
                tags=pulumi.Output.from_input({"clusterctl:id": "0123456789ab"}),
            ),
        )
        waited = pulumi.Output.all(*(resource.urn for resource in made.ready))
        return pulumi.Output.all(made.mounts, waited)

    return program


@pytest.fixture(scope="module")
def everything() -> Recording:
    return record(storage_program(SHARED, SCRATCH, WORK, DATA, LOCAL))


def waits_for(recording: Recording, token: str, name: str) -> set[str]:
    return {short(urn) for urn in recording.one(token, name).request.dependencies}


def test_a_file_system_is_what_was_asked_for_in_the_services_subnet(everything: Recording) -> None:
    shared = everything.one(LUSTRE, "train-shared").inputs
    assert (shared["deploymentType"], shared["storageCapacity"], shared["perUnitStorageThroughput"]) == (
        "PERSISTENT_2",
        4800,
        250,
    )
    assert (shared["fileSystemTypeVersion"], shared["subnetIds"]) == ("2.15", "services")
    scratch = everything.one(LUSTRE, "train-mnt-scratch").inputs
    assert (scratch["deploymentType"], scratch["storageCapacity"]) == ("SCRATCH_2", 1200)
    assert "perUnitStorageThroughput" not in scratch
    efs = everything.one(EFS, "train-work").inputs
    assert (efs["throughputMode"], efs["encrypted"]) == ("elastic", True)
    assert everything.one(MOUNT_TARGET, "train-work").inputs["subnetId"] == "services"


def test_what_holds_data_is_protected_and_says_so_in_its_tags(everything: Recording) -> None:
    rows = {row.name: row for token in (LUSTRE, EFS) for row in everything.of_type(token)}
    assert {name for name, row in rows.items() if row.request.protect} == {"train-shared", "train-work"}
    assert rows["train-shared"].inputs["tags"] == {
        "clusterctl:id": "0123456789ab",
        "clusterctl:mount": "/shared",
        "clusterctl:on-delete": "retain",
        "Name": "train-shared",
    }
    assert rows["train-mnt-scratch"].inputs["tags"]["clusterctl:on-delete"] == "delete"
    protected = {row.name for row in everything.resources if row.request.protect}
    assert protected == {"train-shared", "train-work"}


def test_lustres_ports_are_open_both_ways_between_the_groups_alone(everything: Recording) -> None:
    """FSx refuses to make a file system before port 988 is open, so it waits for the rules."""
    found = {
        (row.type == EGRESS, row.inputs["securityGroupId"], row.inputs["referencedSecurityGroupId"])
        for row in [*everything.of_type(INGRESS), *everything.of_type(EGRESS)]
        if row.inputs["fromPort"] == 988
    }
    servers, nodes = "train-lustre-id", "nodes"
    assert found == {
        (False, servers, nodes),
        (False, servers, servers),
        (False, nodes, servers),
        (True, servers, nodes),
        (True, servers, servers),
    }
    ports = {(row.inputs["fromPort"], row.inputs["toPort"]) for row in everything.of_type(EGRESS)}
    assert ports == {(988, 988), (1018, 1023)}
    rules = {short(row.urn) for row in [*everything.of_type(INGRESS), *everything.of_type(EGRESS)]}
    lustre_rules = {rule for rule in rules if "lustre" in rule}
    assert len(lustre_rules) == 10
    assert waits_for(everything, LUSTRE, "train-shared") >= lustre_rules
    assert not any("cidrIpv4" in row.inputs for row in everything.resources)


def test_a_mount_target_waits_for_port_2049(everything: Recording) -> None:
    rule = everything.one(INGRESS, "train-efs-from-nodes-2049")
    assert (rule.inputs["toPort"], rule.inputs["referencedSecurityGroupId"]) == (2049, "nodes")
    assert short(rule.urn) in waits_for(everything, MOUNT_TARGET, "train-work")
    assert everything.one(MOUNT_TARGET, "train-work").inputs["securityGroups"] == ["train-efs-id"]


def test_nodes_wait_for_file_systems_mount_targets_and_rights(everything: Recording) -> None:
    waited = {short(urn).partition(" ")[0] for urn in everything.exported[1]}
    assert waited >= {"LustreFileSystem", "MountTarget", "RolePolicy", "SecurityGroupIngressRule"}


def test_nodes_are_told_the_names_that_aws_gave(everything: Recording) -> None:
    assert everything.exported[0] == (
        MountPlan(path="/shared", kind="fsx-lustre", source="train-shared.fsx@tcp:/abcdefgh"),
        MountPlan(path="/mnt/scratch", kind="fsx-lustre", source="train-mnt-scratch.fsx@tcp:/abcdefgh"),
        MountPlan(path="/work", kind="efs", source="train-work.efs:/"),
        MountPlan(path="/data", kind="s3", source="ml-datasets/imagenet/", options="region=eu-west-1", writable=False),
        MountPlan(path="/local", kind="nvme", options="single"),
    )


def test_adopted_file_systems_are_read_and_never_changed() -> None:
    recording = record(
        storage_program(
            {"mount": "/old", "fsx-lustre": {"file_system_id": ADOPTED}},
            {"mount": "/older", "efs": {"file_system_id": "fs-0123456789abcdef0", "writable": False}},
        )
    )
    assert recording.of_type(LUSTRE) == recording.of_type(EFS) == []
    (target,) = recording.of_type(MOUNT_TARGET)
    assert target.inputs["fileSystemId"] == "fs-0123456789abcdef0"
    old, older = recording.exported[0]
    assert old.source == "train-old-adopted.fsx@tcp:/abcdefgh"
    assert (older.source, older.writable) == ("train-older-adopted.efs:/", False)
    assert not any("lustre" in row.name for row in recording.of_type(INGRESS))


@pytest.mark.parametrize(
    ("writable", "actions"),
    [
        (False, ["s3:GetObject"]),
        (True, ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]),
    ],
)
def test_rights_end_at_the_prefix(writable: bool, actions: list[str]) -> None:
    bucket = BucketPlan(mount="/data", writable=writable, bucket="ml-datasets", prefix="imagenet/", kms_key=None)
    listing, objects = policy_of([bucket], region="us-west-2")["Statement"]
    assert listing == {
        "Effect": "Allow",
        "Action": ["s3:ListBucket"],
        "Resource": ["arn:aws:s3:::ml-datasets"],
        "Condition": {"StringLike": {"s3:prefix": ["imagenet/*"]}},
    }
    assert objects == {"Effect": "Allow", "Action": actions, "Resource": ["arn:aws:s3:::ml-datasets/imagenet/*"]}


def a_key(number: int) -> str:
    return f"{KMS_EXAMPLE[:-12]}{number:012}"


def test_a_bucket_with_a_key_of_its_own_brings_rights_to_it_by_s3_alone() -> None:
    """Two buckets with one key need one right; only writable buckets need new data keys."""
    plans = [
        BucketPlan(mount="/a", writable=False, bucket="aaa", prefix="", kms_key=a_key(1)),
        BucketPlan(mount="/b", writable=True, bucket="bbb", prefix="", kms_key=a_key(2)),
        BucketPlan(mount="/c", writable=False, bucket="ccc", prefix="", kms_key=a_key(1)),
    ]
    *_, read, written = policy_of(plans, region="us-west-2")["Statement"]
    assert (read["Action"], read["Resource"]) == (["kms:Decrypt"], [a_key(1), a_key(2)])
    assert (written["Action"], written["Resource"]) == (["kms:GenerateDataKey"], [a_key(2)])
    assert read["Condition"] == written["Condition"] == {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com"}}


def test_file_systems_of_the_clusters_own_are_encrypted_with_its_key() -> None:
    plans = storage_plans(a_config(kms_key=KMS_EXAMPLE, storage=[SHARED, WORK, SCRATCH]), CATALOG)
    assert [row.kms_key for row in plans if isinstance(row, LustrePlan | EfsPlan)] == [KMS_EXAMPLE, KMS_EXAMPLE, None]


def test_the_rights_to_all_buckets_are_one_policy_that_fits_into_the_role() -> None:
    prefix = f"{'p' * 99}/"
    longest = [
        {
            "mount": f"/m{number}",
            "s3": {
                "bucket": f"b{number:02}{'x' * 60}",
                "prefix": prefix,
                "writable": True,
                "kms_key": a_key(number % BUCKET_KEYS_LIMIT),
            },
        }
        for number in range(MOUNTS_LIMIT)
    ]
    plans = [row for row in storage_plans(a_config(storage=longest), CATALOG) if isinstance(row, BucketPlan)]
    text = json.dumps(policy_of(plans, region="us-west-2"), separators=(",", ":"))
    assert len(text) < 10_240


def test_a_whole_bucket_needs_no_condition() -> None:
    bucket = BucketPlan(mount="/data", writable=False, bucket="ml-datasets", prefix="", kms_key=None)
    listing, objects = policy_of([bucket], region="cn-north-1")["Statement"]
    assert "Condition" not in listing
    assert objects["Resource"] == ["arn:aws-cn:s3:::ml-datasets/*"]


@pytest.mark.parametrize(
    ("change", "policies", "imports_at_first", "trigger"),
    [
        (
            {},
            {"autoImportPolicy": {"events": ["NEW"]}, "autoExportPolicy": {"events": ["NEW", "DELETED"]}},
            True,
            "auto_import_policy auto_export_policy",
        ),
        ({"exports": []}, {"autoImportPolicy": {"events": ["NEW"]}}, True, "auto_import_policy"),
        ({"imports": []}, {"autoExportPolicy": {"events": ["NEW", "DELETED"]}}, False, "auto_export_policy"),
    ],
)
def test_a_link_to_a_bucket_goes_before_another_takes_its_place_and_keeps_the_files(
    change: dict[str, Any], policies: dict[str, Any], imports_at_first: bool, trigger: str
) -> None:
    """Turning imports or exports on or off makes another link: the provider's update would not end them."""
    lustre = LINKED["fsx-lustre"]
    repository = {**lustre["data_repository"], **change}
    recording = record(storage_program({"mount": "/shared", "fsx-lustre": {**lustre, "data_repository": repository}}))
    link = recording.one(LINK, "train-shared")
    assert link.inputs == {
        "fileSystemId": "train-shared-id",
        "fileSystemPath": "/sets",
        "dataRepositoryPath": "s3://ml-datasets",
        "batchImportMetaDataOnCreate": imports_at_first,
        "deleteDataInFilesystem": False,
        "s3": policies,
        "tags": {"clusterctl:id": "0123456789ab", "Name": "train-shared"},
    }
    request = link.request
    assert (request.deleteBeforeReplace, request.protect) == (True, False)
    assert request.replacement_trigger.string_value == trigger
    assert {request.customTimeouts.create, request.customTimeouts.update, request.customTimeouts.delete} == {"30m"}
    assert f"DataRepositoryAssociation {link.name}" in {short(urn) for urn in recording.exported[1]}
    assert not recording.one(LUSTRE).request.replacement_trigger.string_value


def test_a_bucket_elsewhere_is_linked_for_exports_alone() -> None:
    """FSx imports within a region only; the buckets of these programs are in eu-west-1."""
    lustre = LINKED["fsx-lustre"]
    exporting = {**lustre["data_repository"], "imports": []}
    made = record(
        cluster_program(nodes=1, storage=[{**LINKED, "fsx-lustre": {**lustre, "data_repository": exporting}}])
    )
    assert len(made.of_type(LINK)) == 1
    plans = storage_plans(a_config(storage=[LINKED]), CATALOG)

    def asked() -> pulumi.Output[str]:
        return bucket_regions(plans, region="us-west-2", opts=pulumi.InvokeOutputOptions())["ml-datasets"]

    with pytest.raises(PlanRefused, match="ml-datasets is in eu-west-1, and FSx imports only from one in us-west-2"):
        record(asked)


def test_a_bucket_that_is_gone_does_not_keep_a_cluster_from_its_end() -> None:
    down = record(cluster_program(nodes=1, storage=[LINKED], down=True))
    assert [row.name for row in down.of_type(LINK)] == ["train-shared"]
    assert BUCKET_LOOKUP not in down.invokes


def test_without_buckets_the_role_has_no_policy() -> None:
    assert record(storage_program(WORK)).of_type(ROLE_POLICY) == []


@pytest.fixture(scope="module")
def stored() -> Recording:
    """One node with storage, as a whole cluster."""
    return with_storage()


def test_names_and_protection_of_storage_are_those_of_the_golden_graph(stored: Recording) -> None:
    message = "if it is meant: python -m tests.unit.infra.components.write_golden"
    assert as_text(graph(stored)) == GOLDEN_STORAGE.read_text(encoding="utf-8"), message


def test_no_room_and_no_node_is_paid_before_storage_is_there(stored: Recording) -> None:
    """An empty reservation costs as much as a full one, and FSx takes ten minutes."""
    things = {"LustreFileSystem train-shared", "MountTarget train-work", "RolePolicy train-buckets"}
    assert waits_for(stored, "aws:ec2/capacityReservation:CapacityReservation", "train-reservation") >= things
    assert waits_for(stored, INSTANCE, "train-0") >= things


def test_a_bucket_that_is_not_there_is_told_while_nothing_exists_that_would_have_to_be_undone() -> None:
    recording = Recording()
    with pytest.raises(Exception, match="getBucket found nothing"):
        record(cluster_program(nodes=1, storage=[DATA]), recording, failing=BUCKET_LOOKUP)
    made = {row.type for row in recording.resources if not row.type.startswith("clusterctl:infra:")}
    assert made <= {"pulumi:providers:aws"}, "components are only names in the state"


def test_a_node_s_user_data_names_what_aws_made(stored: Recording) -> None:
    sent = stored.one(INSTANCE, "train-0").request.object.fields["userDataBase64"].struct_value.fields
    text = gzip.decompress(base64.b64decode(sent["value"].string_value)).decode()
    assert "train-shared.fsx@tcp:/abcdefgh" in text
    assert "train-work.efs:/" in text


def test_without_nodes_what_holds_data_stays_with_its_network_and_nothing_else() -> None:
    down = with_storage(down=True)
    assert [row.name for row in down.of_type(LUSTRE)] == ["train-shared"]
    assert down.of_type(EFS) == down.of_type(ROLE_POLICY) == down.of_type(INSTANCE) == []
    assert BUCKET_LOOKUP not in down.invokes
    assert down.one(LUSTRE).request.protect
    assert down.of_type("aws:ec2/capacityReservation:CapacityReservation") == []
