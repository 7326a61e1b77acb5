"""File systems in a state: what is kept, what it costs, and which changes of cluster.yaml would lose it."""

from __future__ import annotations

import json
from typing import Any  # configurations and states as JSON has them

import pytest
from clusterctl.engine.state import StackState, parse_state
from clusterctl.lifecycle.data import bill_lines, data_in, holds_data, kept_in, others_in, refuse_harm
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.fields import KMS_EXAMPLE
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError

CATALOG = load_catalog()
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
EFS = "aws:efs/fileSystem:FileSystem"


def row(type: str, id: str, *, mount: str = "/shared", on_delete: str = "retain", **more: Any) -> dict[str, Any]:
    """One resource as `pulumi stack export` has it."""
    inputs = {"tags": {"clusterctl:mount": mount, "clusterctl:on-delete": on_delete}, **more.pop("inputs", {})}
    return {"urn": f"urn:pulumi:dev::p::{type}::{id}", "type": type, "id": id, "custom": True, "inputs": inputs, **more}


def state_of(*rows: dict[str, Any]) -> StackState:
    return parse_state(json.dumps({"deployment": {"resources": list(rows)}}))


def config_of(*storage: dict[str, Any]) -> ClusterConfig:
    return ClusterConfig.model_validate(
        {"name": "train", "region": "us-west-2", "nodes": 2, "instance_type": "p5.48xlarge", "storage": list(storage)}
    )


FOUR_TIB: dict[str, Any] = {
    "storageCapacity": 4800,
    "perUnitStorageThroughput": 250,
    "deploymentType": "PERSISTENT_2",
}
SHARED = row(LUSTRE, "fs-1", inputs=FOUR_TIB, protect=True)
WORK = row(EFS, "fs-2", mount="/work", inputs={"encrypted": True})
AS_IT_IS: dict[str, Any] = {"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "throughput": 250}}


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ([SHARED], True),
        ([WORK], True),
        ([row(EFS, "fs-2", on_delete="delete")], False),
        ([row(LUSTRE, "fs-3", external=True)], False),
        ([row("aws:efs/mountTarget:MountTarget", "fsmt-1")], False),
        ([row("aws:ec2/vpc:Vpc", "vpc-1")], False),
        ([row("aws:s3/bucket:Bucket", "a-bucket-of-the-persons-own-program")], True),
        ([row("aws:dynamodb/table:Table", "users", protect=True)], True),
        ([row("aws:dynamodb/table:Table", "users")], False),
    ],
)
def test_data_is_what_is_to_outlive_the_nodes(rows: list[dict[str, Any]], holds: bool) -> None:
    assert holds_data(state_of(*rows)) is holds


@pytest.mark.parametrize(
    ("marked", "written", "is_kept"),
    [("retain", "delete", True), ("delete", "retain", True), ("delete", "delete", False), ("delete", None, False)],
)
def test_what_either_the_last_up_or_the_file_wants_kept_is_kept(
    marked: str, written: str | None, is_kept: bool
) -> None:
    stored = row(EFS, "fs-2", mount="/work", on_delete=marked)
    storage: list[dict[str, Any]] = [] if written is None else [{"mount": "/work", "efs": {"on_delete": written}}]
    assert bool(kept_in(state_of(stored), config_of(*storage), CATALOG)) is is_kept


def test_what_a_persons_own_program_protects_is_named() -> None:
    bucket = row("aws:s3/bucket:Bucket", "sets")
    assert others_in(state_of(SHARED, bucket, row("aws:dynamodb/table:Table", "users", protect=True))) == (
        "Bucket sets",
        "Table users",
    )


def test_a_person_is_told_what_each_file_system_costs() -> None:
    lines = bill_lines(data_in(state_of(SHARED, WORK)), CATALOG, region="us-west-2")
    assert lines == [
        "/shared (FSx for Lustre, 4800 GiB, fs-1): $1.38/h",
        "/work (EFS, fs-2): bills what it holds, $0.30 a GiB and month",
    ]
    unknown = bill_lines(data_in(state_of(SHARED, WORK)), CATALOG, region="eu-west-1")
    assert unknown == [
        "/shared (FSx for Lustre, 4800 GiB, fs-1): bills, at a price that is not known",
        "/work (EFS, fs-2): bills what it holds",
    ]


@pytest.mark.parametrize(
    ("storage", "sentence"),
    [
        ([], "/shared (FSx for Lustre, 4800 GiB, fs-1) is not in cluster.yaml any more: write it back"),
        ([{"mount": "/shared", "efs": {}}], "is not in cluster.yaml any more"),
        ([{"mount": "/shared", "fsx-lustre": {"file_system_id": "fs-0a1b2c3d4e5f67890"}}], "not in cluster.yaml"),
        ([{"mount": "/data", "fsx-lustre": {"size": "4800GiB"}}], "is not in cluster.yaml any more"),
        ([{"mount": "/shared", "fsx-lustre": {"size": "2400GiB"}}], "cannot shrink to 2400 GiB"),
        (
            [{"mount": "/shared", "fsx-lustre": {"size": "4800GiB", "type": "scratch"}}],
            "is PERSISTENT_2 and cannot become SCRATCH_2",
        ),
    ],
)
def test_a_change_that_would_lose_data_is_refused(storage: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^s/cluster\.yaml: 1 change would lose data, nothing was changed$"
    ) as refused:
        refuse_harm(state_of(SHARED), config_of(*storage), CATALOG, source="s/cluster.yaml")
    assert sentence in refused.value.problems[0]


def test_all_losses_are_said_at_once() -> None:
    with pytest.raises(ConfigError, match="2 changes would lose data") as refused:
        refuse_harm(state_of(SHARED, WORK), config_of(), CATALOG, source="s/cluster.yaml")
    assert refused.value.hint == "${EDITOR:-nano} s/cluster.yaml"


@pytest.mark.parametrize(
    "storage",
    [
        [AS_IT_IS],
        [{"mount": "/shared", "fsx-lustre": {"size": "7200GiB", "throughput": 500, "on_delete": "delete"}}],
        [AS_IT_IS, {"mount": "/more", "efs": {}}],
    ],
)
def test_growing_and_adding_lose_nothing(storage: list[dict[str, Any]]) -> None:
    refuse_harm(state_of(SHARED), config_of(*storage), CATALOG, source="s/cluster.yaml")


def test_what_was_said_to_be_deleted_may_be_taken_out() -> None:
    refuse_harm(state_of(row(EFS, "fs-2", on_delete="delete")), config_of(), CATALOG, source="s/cluster.yaml")


def test_what_encrypts_is_decided_once() -> None:
    plain = {"mount": "/work", "efs": {"encrypted": False}}
    with pytest.raises(ConfigError) as refused:
        refuse_harm(state_of(WORK), config_of(plain), CATALOG, source="s/cluster.yaml")
    assert "encrypted is decided when it is made" in refused.value.problems[0]


OWN_KEY = "AWS's own key"


@pytest.mark.parametrize(
    ("was", "now", "is_refused"),
    [(None, KMS_EXAMPLE, True), (KMS_EXAMPLE, None, True), (KMS_EXAMPLE, KMS_EXAMPLE, False), (None, None, False)],
)
def test_the_key_of_a_file_system_that_is_there_never_changes(
    was: str | None, now: str | None, is_refused: bool
) -> None:
    """AWS would make it anew, and empty."""
    state = state_of(row(LUSTRE, "fs-1", inputs={**FOUR_TIB, **({} if was is None else {"kmsKeyId": was})}))
    config = config_of(AS_IT_IS).model_copy(update={"kms_key": now})
    if not is_refused:
        return refuse_harm(state, config, CATALOG, source="cluster.yaml")
    with pytest.raises(ConfigError) as refused:
        refuse_harm(state, config, CATALOG, source="cluster.yaml")
    assert f"is encrypted with {was or OWN_KEY}" in refused.value.problems[0]
    return None
