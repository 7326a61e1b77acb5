"""What `storage:` means: what is made, what it costs, what is kept, and what a node is told."""

from __future__ import annotations

import dataclasses
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl_bootstrap.node_plan import MountPlan
from clusterctl_infra.identity import stand_in_identity
from clusterctl_infra.plan.nodes import node_plan
from clusterctl_infra.plan.storage import mount_plan
from clusterctl_infra.plan.storage_model import (
    BucketPlan,
    DisksPlan,
    EfsPlan,
    LustrePlan,
    RepositoryPlan,
    buckets_of,
)

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, a_config, a_plan, problems_of

ADOPTED = "fs-0a1b2c3d4e5f67890"
LUSTRE: dict[str, Any] = {"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "throughput": 250}}
SCRATCH: dict[str, Any] = {
    "mount": "/scratch",
    "fsx-lustre": {"size": "1200GiB", "type": "scratch", "on_delete": "delete"},
}
LINK: dict[str, Any] = {"bucket": "ml-datasets", "prefix": "imagenet/", "path": "/sets", "exports": ["deleted", "new"]}
LINKED: dict[str, Any] = {"mount": "/shared", "fsx-lustre": {**LUSTRE["fsx-lustre"], "data_repository": LINK}}
EFS: dict[str, Any] = {"mount": "/work", "efs": {}}
BUCKET: dict[str, Any] = {"mount": "/data", "s3": {"bucket": "ml-datasets", "prefix": "imagenet/"}}
DISKS: dict[str, Any] = {"mount": "/local", "nvme": {}}
ADOPTED_LUSTRE: dict[str, Any] = {"mount": "/old", "fsx-lustre": {"file_system_id": ADOPTED}}
ALL = [LUSTRE, SCRATCH, EFS, BUCKET, DISKS]


def test_every_kind_of_storage_has_its_plan() -> None:
    lustre, scratch, efs, bucket, disks = a_plan(storage=ALL).storage
    assert isinstance(lustre, LustrePlan)
    assert (lustre.deployment_type, lustre.size_gib, lustre.throughput) == ("PERSISTENT_2", 4800, 250)
    assert isinstance(scratch, LustrePlan)
    assert (scratch.deployment_type, scratch.throughput, scratch.is_retained) == ("SCRATCH_2", None, False)
    assert isinstance(efs, EfsPlan)
    assert (efs.encrypted, efs.is_retained) == (True, True)
    assert bucket == BucketPlan(mount="/data", writable=False, bucket="ml-datasets", prefix="imagenet/", kms_key=None)
    assert disks == DisksPlan(mount="/local", writable=True, level="stripe")


def test_a_link_to_a_bucket_is_planned_in_awss_words_and_order() -> None:
    (row,) = a_plan(storage=[LINKED]).storage
    assert isinstance(row, LustrePlan)
    assert row.repository == RepositoryPlan(
        bucket="ml-datasets",
        prefix="imagenet/",
        path="/sets",
        imports=("NEW", "CHANGED", "DELETED"),
        exports=("NEW", "DELETED"),
    )
    assert row.repository.address == "s3://ml-datasets/imagenet/"
    assert dataclasses.replace(row.repository, prefix="").address == "s3://ml-datasets"
    assert buckets_of([row, *a_plan(storage=[BUCKET]).storage]) == ("ml-datasets",)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (
            {},
            ["only root may write at its top: a script can open it (chmod 1777 /shared)", "deletes it in s3://ml-data"],
        ),
        ({"data_repository": {**LINK, "exports": ["new"]}}, ["only root may write at its top"]),
        ({"data_repository": {**LINK, "exports": []}, "writable": False}, []),
        ({"data_repository": None}, []),
    ],
)
def test_what_a_link_means_for_users_and_objects_is_said(change: dict[str, Any], parts: list[str]) -> None:
    keys = {key: value for key, value in {**LINKED["fsx-lustre"], **change}.items() if value is not None}
    messages = [problem.message for problem in a_plan(storage=[{"mount": "/shared", "fsx-lustre": keys}]).problems]
    found = [line for line in messages if "its top" in line or "deleting a file" in line]
    assert len(found) == len(parts)
    assert all(part in line for part, line in zip(parts, found, strict=True)), found


def test_what_is_linked_stays_linked_without_nodes() -> None:
    with_nodes, without = (a_plan(storage=[LINKED], down=down).storage for down in (False, True))
    assert with_nodes == without


@pytest.mark.parametrize(
    ("storage", "usd_per_hour"),
    [
        ([LUSTRE], 4800 * 0.21 / 730),
        ([SCRATCH], 1200 * 0.14 / 730),
        ([LUSTRE, SCRATCH], (4800 * 0.21 + 1200 * 0.14) / 730),
        ([EFS, BUCKET, DISKS], 0.0),
        ([ADOPTED_LUSTRE], 0.0),
        ([], 0.0),
    ],
)
def test_the_price_holds_what_storage_costs_full_or_empty(storage: list[Any], usd_per_hour: float) -> None:
    price = a_plan(storage=storage).price
    assert price.storage_usd_per_hour == pytest.approx(usd_per_hour)
    assert price.nodes_usd_per_hour is not None
    assert price.disks_usd_per_hour is not None
    rest = price.nodes_usd_per_hour + price.disks_usd_per_hour + price.addresses_usd_per_hour
    assert price.total_usd_per_hour == pytest.approx(rest + usd_per_hour)


def test_a_storage_price_that_is_not_known_makes_the_sum_unknown_and_is_said() -> None:
    made = a_plan(storage=[LUSTRE], region="eu-west-1", instance_type="p4d.24xlarge")
    assert made.price.storage_usd_per_hour is None
    assert made.price.total_usd_per_hour is None
    dated = CATALOG.storage.dated
    sentence = f"the price of FSx for Lustre in eu-west-1 is not in the snapshot of {dated}"
    assert any(sentence in row.message for row in made.problems)
    refused = a_plan(storage=[LUSTRE], region="eu-west-1", instance_type="p4d.24xlarge", caps={"budget_usd": 100})
    assert sentence in problems_of(refused)["caps.budget_usd"]


def test_a_budget_ends_earlier_when_storage_costs_too() -> None:
    without, with_lustre = (a_plan(storage=rows, caps={"budget_usd": 1000}) for rows in ([], [LUSTRE]))
    assert with_lustre.deadline.at < without.deadline.at


def test_what_bills_by_use_is_said_not_to_be_in_the_price() -> None:
    messages = [row.message for row in a_plan(storage=[EFS], caps={"budget_usd": 1000}).problems]
    assert messages[0] == (
        "/work: EFS bills $0.30 for each GiB stored a month, $0.03 for each read, $0.06 for each written; "
        "none of it is in the price, and no budget ends it"
    )


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        (
            [LUSTRE],
            "/shared: the deadline does not end what holds data; it bills at $1.38 an hour until clusterctl down --all",
        ),
        ([EFS], "/work: the deadline does not end what holds data; it bills until clusterctl down --all"),
        (
            [SCRATCH],
            "/scratch: the deadline does not end what holds data; it bills at $0.23 an hour until clusterctl down",
        ),
    ],
)
def test_what_outlives_the_deadline_is_said(storage: list[Any], message: str) -> None:
    assert message in [row.message for row in a_plan(storage=storage).problems]


@pytest.mark.parametrize("storage", [[], [BUCKET, DISKS], [ADOPTED_LUSTRE]])
def test_what_is_not_the_cluster_s_own_is_not_its_bill(storage: list[Any]) -> None:
    assert not [row for row in a_plan(storage=storage).problems if "the deadline does not end" in row.message]


def test_without_nodes_only_what_holds_data_and_was_made_is_kept() -> None:
    assert [row.mount for row in a_plan(storage=ALL, down=True).storage] == ["/shared", "/work"]
    kept = a_plan(storage=ALL, down=True, kept=frozenset({"/work", "/data"}))
    assert [row.mount for row in kept.storage] == ["/work"]
    assert kept.price.total_usd_per_hour == kept.price.addresses_usd_per_hour


def test_a_node_is_told_what_to_mount_in_the_order_of_the_file() -> None:
    config, made = a_config(storage=ALL), a_plan(storage=ALL)
    mounts = node_plan(config, made, 0).mounts
    assert [(row.path, row.kind, row.writable) for row in mounts] == [
        ("/shared", "fsx-lustre", True),
        ("/scratch", "fsx-lustre", True),
        ("/work", "efs", True),
        ("/data", "s3", False),
        ("/local", "nvme", True),
    ]
    assert mounts[3] == mount_plan(made.storage[3], region="us-west-2")
    assert (mounts[3].source, mounts[3].options, mounts[4].options) == (
        "ml-datasets/imagenet/",
        "region=us-west-2",
        "stripe",
    )


def test_before_anything_exists_names_of_the_right_length_stand_in() -> None:
    """So the size of user-data that a plan shows is the real one, to a few bytes."""
    (mount,) = node_plan(a_config(storage=[LUSTRE]), a_plan(storage=[LUSTRE]), 0).mounts
    real = "fs-0a1b2c3d4e5f67890.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh"
    assert len(mount.source) == len(real)
    (adopted,) = node_plan(a_config(storage=[ADOPTED_LUSTRE]), a_plan(storage=[ADOPTED_LUSTRE]), 0).mounts
    assert adopted.source.startswith(f"{ADOPTED}.fsx.us-west-2.amazonaws.com@tcp:/")


def test_the_names_that_aws_gave_take_the_stand_ins_places() -> None:
    given = MountPlan(path="/shared", kind="fsx-lustre", source="fs-1.fsx.us-west-2.amazonaws.com@tcp:/x")
    assert node_plan(a_config(storage=[LUSTRE]), a_plan(storage=[LUSTRE]), 0, mounts=[given]).mounts == (given,)


@pytest.mark.parametrize(
    ("before", "after", "is_new"),
    [
        ([LUSTRE], [{"mount": "/shared", "fsx-lustre": {"size": "7200GiB", "throughput": 500}}], False),
        ([LUSTRE], [{"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "on_delete": "delete"}}], False),
        ([LUSTRE], [LINKED], False),
        (
            [LINKED],
            [{"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "data_repository": {"bucket": "x-y"}}}],
            False,
        ),
        ([LUSTRE], [{"mount": "/shared2", "fsx-lustre": {"size": "4800GiB"}}], True),
        ([LUSTRE], [{"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "writable": False}}], True),
        ([LUSTRE], [LUSTRE, BUCKET], True),
        ([BUCKET], [{"mount": "/data", "s3": {"bucket": "ml-datasets", "prefix": "other/"}}], True),
        ([DISKS], [{"mount": "/local", "nvme": {"level": "single"}}], True),
        ([ADOPTED_LUSTRE], [{"mount": "/old", "fsx-lustre": {"file_system_id": "fs-0a1b2c3d4e5f67891"}}], True),
    ],
)
def test_a_node_is_made_anew_when_what_it_mounts_changes_not_when_it_grows(
    before: list[Any], after: list[Any], is_new: bool
) -> None:
    triggers = {a_plan(storage=rows).slots[0].replacement_trigger for rows in (before, after)}
    assert (len(triggers) == 2) is is_new


@pytest.mark.parametrize(
    ("mount", "label"),
    [("/shared", "shared"), ("/mnt/data", "mnt-data"), ("/mnt-data", "mnt--data"), ("/mnt/run-1/x", "mnt-run--1-x")],
)
def test_no_two_mounts_have_resources_of_one_name(mount: str, label: str) -> None:
    (row,) = a_plan(storage=[{"mount": mount, "efs": {}}]).storage
    assert row.label == label


def test_adopted_file_systems_come_with_a_word_about_their_network() -> None:
    first = stand_in_identity(owner="you", image_id=None, zone=None, region="us-west-2", now=BORN)
    message = problems_of(a_plan(identity=first, storage=[ADOPTED_LUSTRE]))["storage[0]"]
    assert "which a network that is made new cannot reach" in message
    living = a_plan(storage=[ADOPTED_LUSTRE])
    assert not problems_of(living)
    assert "has to be in this cluster's network" in problems_of(living, "warning")["storage"]
    adopt = {"adopt": {"vpc_id": "vpc-0a1b2c3d", "node_subnet_id": "subnet-0a1b2c3d"}}
    in_its_network = a_plan(storage=[ADOPTED_LUSTRE], network=adopt)
    assert not problems_of(in_its_network)
    assert "has to let TCP 988 and 1018-1023 in" in problems_of(in_its_network, "warning")["storage"]
    message = problems_of(a_plan(storage=[{"mount": "/old", "efs": {"file_system_id": ADOPTED}}]), "warning")["storage"]
    assert "gets a mount target in this cluster's network" in message
