"""One line says that cluster.yaml does not give the size, who does, and what ends that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.engine.size_note import size_note
from clusterctl.program import run

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Screen

SAYS_4 = "s/cluster.yaml says 4. What ends that: clusterctl up s --nodes 4"


@pytest.mark.parametrize(
    ("values", "in_file", "line"),
    [
        ({}, "4", None),
        ({"nodes": "4"}, "4", None),
        ({"nodes": "6"}, None, None),
        (
            {"nodes": "6", "nodes-over": "4"},
            "4",
            f"6 nodes, by --nodes of an up; {SAYS_4}, or another number in s/cluster.yaml",
        ),
        (
            {"nodes": "1"},
            "4",
            f"1 node, by clusterctl:nodes in Pulumi.dev.yaml; {SAYS_4}",
        ),
        (
            {"nodes": "6", "nodes-over": "4"},
            "3",
            "s/cluster.yaml says 3 nodes now, which ends the 6 of an earlier --nodes",
        ),
    ],
)
def test_who_gives_the_size_is_named_with_what_ends_that(
    values: Mapping[str, str], in_file: str | None, line: str | None
) -> None:
    note = size_note(values, in_file=in_file, source="s/cluster.yaml", config="Pulumi.dev.yaml", shown="s")
    assert note == line


@pytest.mark.parametrize(("in_file", "nodes"), [(4, 6), (3, 3)])
def test_plan_says_the_size_that_up_will_take_and_why(
    tmp_path: Path, own_home: Path, screen: Screen, in_file: int, nodes: int
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text('config:\n  clusterctl:nodes: "6"\n  clusterctl:nodes-over: "4"\n')
    (tmp_path / "cluster.yaml").write_text(
        f"name: train\nregion: us-west-2\nnodes: {in_file}\ngpus: h100:8\naccess: {{mode: private}}\n"
    )
    assert run(["plan", str(tmp_path)], screen.output) == 0, screen.err
    assert f"· {nodes} × p5.48xlarge ·" in screen.out
    assert ("  size         6 nodes, by --nodes of an up" in screen.out) == (nodes == 6)
    assert ("cluster.yaml says 3 nodes now, which ends the 6" in screen.out) == (nodes == 3)
