"""A size by `--nodes` holds until cluster.yaml says another number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from clusterctl_infra.config.flag_size import size_in_file, typed_size, without_ended_size

FLAG = {"nodes": "6", "nodes-over": "4"}
NEITHER = {"nodes": None, "nodes-over": None}


@pytest.mark.parametrize(
    ("values", "nodes", "in_file", "changes"),
    [
        ({}, None, "4", {}),
        ({}, 6, "4", {"nodes": "6", "nodes-over": "4"}),
        ({}, 4, "4", {}),
        (FLAG, None, "4", {}),
        (FLAG, None, "3", NEITHER),
        (FLAG, None, "8", NEITHER),
        (FLAG, None, None, {}),
        (FLAG, 5, "3", {"nodes": "5", "nodes-over": "3"}),
        (FLAG, 4, "4", NEITHER),
        ({"nodes": "6"}, None, "3", {}),
        ({"nodes": "6"}, 3, "3", {"nodes": None}),
    ],
)
def test_what_an_up_writes_of_the_size(
    values: Mapping[str, str], nodes: int | None, in_file: str | None, changes: Mapping[str, str | None]
) -> None:
    assert typed_size(values, nodes, in_file=in_file) == changes


@pytest.mark.parametrize(
    ("over", "in_file", "holds"), [("4", "4", True), ("4", "3", False), (None, "3", True), ("4", None, True)]
)
def test_a_program_takes_the_flags_size_as_long_as_it_holds(over: str | None, in_file: str | None, holds: bool) -> None:
    found = without_ended_size({"nodes": "6", "image": "x"}, over, in_file=in_file)
    assert found == {"image": "x", **({"nodes": "6"} if holds else {})}


@pytest.mark.parametrize(
    ("text", "size"),
    [("nodes: 4\n", "4"), ("name: x\n", None), ("nodes: [4]\n", None), ("- 4\n", None)],
)
def test_the_size_in_the_file_is_read_without_judging_it(tmp_path: Path, text: str, size: str | None) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    assert size_in_file(tmp_path / "cluster.yaml") == size
    assert size_in_file(tmp_path / "none.yaml") is None
