"""GPU specifications, and the types that fit them."""

from __future__ import annotations

import contextlib

import pytest
from clusterctl_infra.catalog.gpus import GpuSpecUnreadable, parse_gpus
from clusterctl_infra.catalog.reader import load_catalog
from hypothesis import given
from hypothesis import strategies as st

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("h100:8", ["p5.48xlarge"]),
        ("8xh100", ["p5.48xlarge"]),
        ("8 x H100", ["p5.48xlarge"]),
        ("h100-80gb.sxm.8x", ["p5.48xlarge"]),
        ("h100-80gb:8", ["p5.48xlarge"]),
        ("H100", ["p5.4xlarge"]),
        ("a100-40gb:8", ["p4d.24xlarge"]),
        ("a100-80gb:8", ["p4de.24xlarge"]),
        ("rtx pro 6000:8", ["g7e.48xlarge"]),
        ("RTX PRO Server 6000:8", ["g7e.48xlarge"]),
        ("h100:9", []),
        ("h300:8", []),
    ],
)
def test_a_specification_finds_its_types(spec: str, names: list[str]) -> None:
    assert [row.name for row in CATALOG.for_gpus(spec)] == names


@pytest.mark.parametrize(
    ("spec", "region", "first"),
    [
        ("h200:8", "us-west-2", "p5en.48xlarge"),
        ("a100:8", "us-west-2", "p4d.24xlarge"),
        ("a10g:1", "us-west-2", "g5.xlarge"),
        ("a100:8", "ap-southeast-1", "p4de.24xlarge"),
    ],
)
def test_of_several_types_the_cheapest_known_comes_first(spec: str, region: str, first: str) -> None:
    assert CATALOG.for_gpus(spec, region)[0].name == first


@pytest.mark.parametrize("spec", ["", ":8", "8x", "h100:8.5", "h100:-1", "h100:8:8", "100", "h100:eight"])
def test_what_is_no_specification_is_unreadable(spec: str) -> None:
    with pytest.raises(GpuSpecUnreadable):
        parse_gpus(spec)


@given(st.text())
def test_any_text_is_read_or_unreadable(text: str) -> None:
    with contextlib.suppress(GpuSpecUnreadable):
        assert parse_gpus(text).count >= 0


def test_part_of_a_gpu_is_never_found_by_gpus() -> None:
    assert {"g6f.large", "gr6f.4xlarge"} <= set(CATALOG.names())
    assert {row.family for row in CATALOG.with_gpu("l4")} == {"g6", "gr6"}
