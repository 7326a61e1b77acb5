"""A whole cluster of process machines, which need no root: up, from node to node, the start barrier, down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rehearsed import Rehearsed, rehearsed


@pytest.fixture
def rootless(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two process machines, not yet up."""
    with rehearsed(tmp_path, machines="process", nodes=2) as cluster:
        yield cluster


def test_process_machines_reach_each_other_and_meet(rootless: Rehearsed) -> None:
    rootless.up()
    other = f"{rootless.name}-1"
    assert rootless.ok("ssh", "--node", "0", "--", "ssh", "-o", "BatchMode=yes", other, "hostname") == f"{other}\n"
    met = rootless.ok("ssh", "--node", "all", "--", "clusterctl-node", "barrier", "start", "--timeout", "30s")
    assert met.count('"barrier": "start"') == 2
    rootless.down()
