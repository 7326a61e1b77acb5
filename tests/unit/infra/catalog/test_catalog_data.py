"""The data files, and what the reader says of them."""

from __future__ import annotations

import pytest
from clusterctl_infra.catalog.extract import row as extracted
from clusterctl_infra.catalog.reader import load_catalog

CATALOG = load_catalog()
A_PART_OF_A_GPU = {
    "InstanceType": "g6f.large",
    "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 8192},
    "GpuInfo": {"Gpus": [{"Count": 0, "LogicalGpuCount": 1, "Name": "L4", "MemoryInfo": {"SizeInMiB": 2861}}]},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    "NetworkInfo": {
        "MaximumNetworkCards": 1,
        "NetworkCards": [{"MaximumNetworkInterfaces": 2, "BaselineBandwidthInGbps": 1.5}],
    },
    "SupportedUsageClasses": ["spot", "on-demand"],
    "PlacementGroupInfo": {"SupportedStrategies": ["cluster"]},
}


@pytest.mark.parametrize(
    ("name", "vcpus", "gpu_count", "gpu_name", "topology_levels"),
    [
        ("p5.48xlarge", 192, 8, "H100 80GB", 3),
        ("p6-b300.48xlarge", 192, 8, "B300 288GB", 4),
        ("g5.xlarge", 4, 1, "A10G 24GB", 0),
        ("t3.micro", 2, 0, None, 0),
    ],
)
def test_a_type_is_as_aws_describes_it(
    name: str, vcpus: int, gpu_count: int, gpu_name: str | None, topology_levels: int
) -> None:
    row = CATALOG.instance_type(name)
    assert row is not None
    assert (row.vcpus, row.gpu_count, row.gpu_name, row.topology_levels) == (
        vcpus,
        gpu_count,
        gpu_name,
        topology_levels,
    )


def test_what_aws_does_not_have_is_none() -> None:
    assert CATALOG.instance_type("p5.24xlarge") is None


def test_an_unknown_price_is_none_and_never_zero() -> None:
    assert CATALOG.price_usd_per_hour("p5e.48xlarge", "us-west-2") is None
    assert all(price.on_demand_usd_per_hour != 0 for price in CATALOG.prices.values())


def test_a_known_price_is_the_one_of_the_snapshot() -> None:
    assert CATALOG.price_usd_per_hour("p5.48xlarge", "us-west-2") == 55.04
    assert CATALOG.spot_price_usd_per_hour("p5.48xlarge", "us-west-2") == 12.6935
    assert CATALOG.prices_dated == "2026-01"


def test_every_priced_region_is_a_region() -> None:
    assert {region for _, region in CATALOG.prices} <= set(CATALOG.regions())


def test_a_type_is_refused_only_where_the_snapshot_is_complete() -> None:
    assert not CATALOG.is_offered("p6-b300.48xlarge", "us-east-1")
    assert CATALOG.is_offered("g5.xlarge", "ap-southeast-2")


def test_an_image_has_a_parameter_per_architecture() -> None:
    parameter = CATALOG.image_parameter("dlami-base-ubuntu-22.04")
    assert parameter is not None
    assert parameter.startswith("/aws/service/deeplearning/ami/x86_64/")
    assert CATALOG.image_parameter("dlami-base-amazon-linux-2023", "arm64") is None
    assert CATALOG.image_parameter("no-such-image") is None


def test_a_part_of_a_gpu_is_extracted_as_one_part() -> None:
    row = extracted(A_PART_OF_A_GPU)
    assert (row["gpu_count"], row["gpu_name"], row["max_efa_interfaces"], row["nvme_gb"]) == (1, "L4 3GB part", 0, 0)
    assert (row["usage_classes"], row["placement_group_cluster"]) == (["on-demand", "spot"], True)
