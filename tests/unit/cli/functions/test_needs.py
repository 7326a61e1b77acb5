"""What functions ask of a cluster of their app's own, and the cluster.yaml that it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import clusterctl
import pytest
from clusterctl.functions.cluster_text import (
    AppCluster,
    by_arguments,
    cluster_text,
    link_problem,
    lustre_gib,
    substitutes,
)
from clusterctl.functions.kept_cluster import checked_access, is_set
from clusterctl.functions.needs import ClusterNeeds, fabric_of, merged, mounts_of, volumes_of
from clusterctl.functions.own_cluster import refuse_without_caps
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.errors import ConfigError, UsageError

APP = AppCluster(name="exp", region="us-west-2", access={"mode": "private"})


def test_the_text_is_a_cluster_yaml_that_says_all_of_it(tmp_path: Path) -> None:
    needs = ClusterNeeds(
        num_instances=4,
        gpu="h100:8",
        fabric="required",
        max_price_per_hour=60.5,
        max_run_time_hours=1.5,
        budget_usd=1000,
        volumes=volumes_of({"/shared": {"name": "data", "size_gb": 2000}}, num_instances=4),
        mounts=mounts_of({"/data": "s3://ml-datasets/imagenet"}),
    )
    file = tmp_path / "cluster.yaml"
    file.write_text(cluster_text(APP, needs))
    config = load_cluster(file, overrides={}, source="cluster.yaml")
    assert (config.name, config.nodes, config.gpus, config.fabric) == ("exp", 4, "h100:8", "required")
    assert config.access.mode == "private"
    caps = config.caps
    assert (caps.price_usd_per_hour, caps.budget_usd) == (60.5, 1000)
    assert caps.idle is not None
    assert (caps.runtime.total_seconds(), caps.idle.total_seconds()) == (5400, 900)
    shared, data = config.storage
    assert shared.fsx_lustre is not None
    assert (shared.mount, shared.fsx_lustre.size) == ("/shared", 2400)
    assert data.s3 is not None
    assert (data.mount, data.s3.bucket, data.s3.prefix, data.s3.writable) == (
        "/data",
        "ml-datasets",
        "imagenet/",
        False,
    )


@pytest.mark.parametrize(
    ("size_gb", "size_gib"), [(1, None), (1199, None), (1200, 1200), (1288, 1200), (1289, 2400), (5000, 4800)]
)
def test_a_volume_is_on_efs_or_the_smallest_lustre_that_holds_it(size_gb: int, size_gib: int | None) -> None:
    assert lustre_gib(size_gb) == size_gib


def test_functions_of_one_app_share_a_cluster_with_the_most_that_any_needs() -> None:
    small = ClusterNeeds(num_instances=1, max_run_time_hours=2)
    large = ClusterNeeds(
        num_instances=4, gpu="h100:8", mounts=mounts_of({"/data": "s3://bucket"}), max_run_time_hours=1
    )
    found = merged({"small": small, "large": large})
    assert (found.num_instances, found.gpu, found.max_run_time_hours) == (4, "h100:8", 2)
    assert found.mounts == large.mounts
    assert merged({"a": large, "b": ClusterNeeds(gpu="8xh100")}).gpu == "h100:8"
    with pytest.raises(UsageError, match=r"large has gpu='h100:8' and other 'a100:8'.*App of its own"):
        merged({"large": large, "other": ClusterNeeds(gpu="a100:8")})
    with pytest.raises(UsageError, match="another function"):
        merged({"large": large, "other": ClusterNeeds(mounts=mounts_of({"/data": "s3://other"}))})
    with pytest.raises(UsageError, match="gpu= and instance_type=: give only one"):
        merged({"large": large, "other": ClusterNeeds(instance_type="p5.48xlarge")})


@pytest.mark.parametrize(
    ("words", "nodes", "message"),
    [
        ({"name": "a", "size_gb": 1, "interface": "block"}, 4, "a disk belongs to one machine, and there are 4"),
        ({"name": "a", "size_gb": 1, "interface": "block"}, 1, "not built yet"),
        ({"name": "a", "size_gb": 1, "interface": "tape"}, 1, "'file' or 'block'"),
        ({"name": "a", "size_gb": 1, "intreface": "file"}, 1, "did you mean interface"),
        ({"name": "", "size_gb": 1}, 1, "name=''"),
        ({"name": "a", "size_gb": 0.5}, 1, "size_gb=0.5"),
        ("data", 1, "is 'data'"),
    ],
)
def test_a_volume_that_cannot_be_is_told_with_its_path(words: Any, nodes: int, message: str) -> None:
    with pytest.raises(UsageError) as e:
        volumes_of({"/shared": words}, num_instances=nodes)
    assert e.value.message.startswith("volumes['/shared']")
    assert message in e.value.message


def test_a_mount_is_a_bucket_or_below_a_prefix_of_one() -> None:
    whole, below = mounts_of({"/a": "s3://bucket", "/b": "s3://bucket/x/y/"})
    assert (whole.bucket, whole.prefix, below.prefix) == ("bucket", "", "x/y/")
    with pytest.raises(UsageError, match="write s3://bucket"):
        mounts_of({"/a": "gs://bucket"})


def test_words_for_interconnects_become_efa_and_are_held_against_the_catalog() -> None:
    assert (fabric_of("InfiniBand"), fabric_of("EFA"), fabric_of("Ethernet")) == ("required", "required", "none")
    with pytest.raises(UsageError, match="internode_interconnect='NVLink'"):
        fabric_of("NVLink")
    notes = list(substitutes(ClusterNeeds(fabric="required", fabric_word="InfiniBand", priority="med")))
    assert "AWS has EFA instead of InfiniBand" in notes[0]
    assert "priority='med'" in notes[1]
    types = load_catalog().types
    assert link_problem("sxm5", types["p5.48xlarge"]) is None
    assert link_problem("nvlink", types["p5.48xlarge"]) is None
    assert link_problem("pcie", types["g6.48xlarge"]) is None
    assert "a p5.48xlarge has SXM5 GPUs with NVLink" in str(link_problem("sxm4", types["p5.48xlarge"]))
    assert "a g6.48xlarge has GPUs on PCIe" in str(link_problem("sxm5", types["g6.48xlarge"]))


def test_problems_are_told_by_the_arguments_that_they_come_from() -> None:
    error = by_arguments(
        ConfigError(
            "c",
            problems=[
                "  line 9   caps.price_usd_per_hour: a node costs $55.04",
                "  line 3   access.ssh_from[0]: an example's address",
            ],
        )
    )
    assert error.message == "2 problems, nothing was started"
    assert error.problems == (
        "  max_price_per_hour: a node costs $55.04",
        "  access (ssh_from): an example's address",
    )


@pytest.mark.parametrize(
    ("needs", "missing"),
    [
        (ClusterNeeds(), "max_price_per_hour= and max_run_time_hours= or budget_usd= is missing"),
        (ClusterNeeds(max_price_per_hour=60), "only within caps, and max_run_time_hours= or budget_usd= is missing"),
        (ClusterNeeds(budget_usd=60), "only within caps, and max_price_per_hour= is missing"),
    ],
)
def test_a_program_agrees_to_a_price_within_caps_alone(needs: ClusterNeeds, missing: str) -> None:
    with pytest.raises(UsageError) as e:
        refuse_without_caps(needs)
    assert missing in e.value.message
    refuse_without_caps(ClusterNeeds(max_price_per_hour=60, budget_usd=100))


def test_a_variable_that_money_hangs_on_is_1_or_refused() -> None:
    assert is_set("X", {"X": "1"})
    assert not is_set("X", {"X": "0"})
    assert not is_set("X", {})
    with pytest.raises(UsageError, match="X=true: 1, or 0"):
        is_set("X", {"X": "true"})


def test_access_is_a_word_or_what_cluster_yaml_has() -> None:
    assert checked_access("private") == {"mode": "private"}
    assert checked_access({"ssh_from": ["203.0.113.7/32"]}) == {"ssh_from": ["203.0.113.7/32"]}
    with pytest.raises(UsageError, match="access='everybody'"):
        checked_access("everybody")


def test_an_app_without_region_and_access_names_both_before_anything_is_made() -> None:
    @clusterctl.App("exp").function(gpu="h100:8")
    def double(number: int) -> int:
        return number * 2

    app = clusterctl.App("exp")
    app.function(gpu="h100:8")(lambda: 1)
    with pytest.raises(UsageError, match="no region= and no access="):
        _ = app.stack
    assert double.local(2) == 4


def test_a_second_function_that_wants_another_cluster_is_refused_where_it_is_written() -> None:
    app = clusterctl.App("exp")
    app.function(gpu="h100:8")(lambda: 1)

    def other() -> int:
        return 2

    with pytest.raises(UsageError, match="one app has one cluster"):
        app.function(gpu="a100:8")(other)


def test_what_describes_a_cluster_stands_not_beside_the_name_of_one() -> None:
    with pytest.raises(UsageError, match=r"volumes=, budget_usd= would describe a cluster of the app's own"):
        clusterctl.App("exp").function(cluster="train", volumes={}, budget_usd=3)
    with pytest.raises(UsageError, match=r"image= would describe a cluster of the app's own"):
        clusterctl.App("exp").function(cluster="train", image="ubuntu-22.04")
    # A container's image describes no machine.
    clusterctl.App("exp").function(cluster="train", image="nvcr.io/nvidia/pytorch:23.10-py3")
    clusterctl.App("exp").function(gpu="h100:8", image="ubuntu-22.04")
