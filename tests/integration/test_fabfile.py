"""examples/fabfile with Fabric's own program, on a rehearsed cluster of process machines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rehearsed import BIN, ROOT, Done, Rehearsed, rehearsed, run


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Two process machines, up."""
    with rehearsed(tmp_path_factory.mktemp("fabfile"), machines="process", nodes=2) as cluster:
        cluster.up()
        yield cluster
        cluster.down()


def fab(cluster: Rehearsed, *words: str) -> Done:
    return run([str(BIN / "fab"), *words], env=cluster.env, cwd=ROOT / "examples" / "fabfile", timeout_s=120)


def test_the_tasks_run_on_all_nodes(cluster: Rehearsed, tmp_path: Path) -> None:
    listed = fab(cluster, "--list")
    assert {"check", "deploy", "uptime"} <= set(listed.stdout.split()), listed.text
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho grüße\n", encoding="utf-8")
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    deployed = fab(cluster, "deploy", "--script", str(script))
    assert deployed.exit_code == 0, deployed.text
    assert sorted(deployed.stdout.splitlines()) == [f"[{cluster.name}-{slot}] {digest}  train.sh" for slot in (0, 1)]
    assert fab(cluster, "check").stdout == "2 nodes have the same script\n"
    cluster.ok("ssh", "--node", "1", "echo changed >> train.sh")
    assert fab(cluster, "check").stdout == f"differs: {cluster.name}-1\n"


def test_a_task_that_fails_on_a_node_ends_fab_with_the_nodes_name(cluster: Rehearsed) -> None:
    cluster.ok("ssh", "--node", "1", "rm -f train.sh")
    failed = fab(cluster, "check")
    assert failed.exit_code != 0
    assert f"{cluster.name}-1 exit 1" in failed.stderr, failed.text
