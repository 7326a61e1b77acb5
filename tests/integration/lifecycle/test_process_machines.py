"""A whole cluster of process machines, which need no root: up, from node to node, the start barrier, down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl.copying.broadcast import LEAST_BYTES

from tests.integration.rehearsed import Rehearsed, rehearsed


@pytest.fixture
def rootless(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of three process machines, not yet up."""
    with rehearsed(tmp_path, machines="process", nodes=3) as cluster:
        yield cluster


def test_process_machines_reach_each_other_and_meet(rootless: Rehearsed) -> None:
    rootless.up()
    other = f"{rootless.name}-1"
    assert rootless.ok("ssh", "--node", "0", "--", "ssh", "-o", "BatchMode=yes", other, "hostname") == f"{other}\n"
    met = rootless.ok("ssh", "--node", "all", "--", "clusterctl-node", "barrier", "start", "--timeout", "30s")
    assert met.count('"barrier": "start"') == 3
    env_shows_what_a_nodes_programs_find(rootless)
    a_large_file_leaves_this_computer_once(rootless)
    another_home_leaves_it_alone(rootless)
    rootless.down()


def env_shows_what_a_nodes_programs_find(cluster: Rehearsed) -> None:
    shown = cluster.ok("env", "--node", "1")
    assert shown == cluster.ok("ssh", "--node", "1", "cat", "/etc/clusterctl/env")
    read = json.loads(cluster.ok("env", "--node", "1", "--json"))
    assert (read["NNODES"], read["NODE_RANK"]) == ("3", "1")


def a_large_file_leaves_this_computer_once(cluster: Rehearsed) -> None:
    """Two of three nodes have it from a node, by the nodes' own trust."""
    file = cluster.folder / "weights.bin"
    file.write_bytes(b"".join(number.to_bytes(8, "big") for number in range(LEAST_BYTES // 8)))
    done = cluster.run("cp", str(file), "all:weights.bin")
    assert done.exit_code == 0, done.text
    assert done.stderr.count(f"weights.bin from {cluster.name}-") == 2, done.text
    sums = cluster.ok("ssh", "--node", "all", "--gather", "sha256sum", "weights.bin")
    assert hashlib.sha256(file.read_bytes()).hexdigest() in sums
    assert "(3 nodes)" in sums, sums


def another_home_leaves_it_alone(cluster: Rehearsed) -> None:
    """The same stack, and the same name, with another CLUSTERCTL_HOME: its owner is named, and nothing ends."""
    own = cluster.env["CLUSTERCTL_HOME"]
    there = {"CLUSTERCTL_HOME": f"{own}-2"}
    before = cluster.starts()
    for verb in ("up", "down"):
        refused = cluster.run(verb, str(cluster.folder), env=there)
        assert refused.exit_code == 2, refused.text
        assert f"is rehearsed in the home {own}" in refused.stderr
        assert f"next: export CLUSTERCTL_HOME={own}" in refused.stderr
    command = f"CLUSTERCTL_HOME={own} clusterctl rehearse clean {cluster.name}"
    elsewhere = {**there, "PULUMI_BACKEND_URL": f"file://{own}-2"}  # where no state says whose it is
    refused = cluster.run("up", str(cluster.folder), env=elsewhere)
    assert refused.exit_code == 1, refused.text
    assert f"machines of another home already use the name {cluster.name} on this computer" in refused.stderr
    assert f"in the home {own})" in refused.stderr
    assert f"next: {command}" in refused.stderr
    assert "network  " not in refused.stderr, "something was made before"
    assert command in cluster.run("rehearse", "list", env=there).stdout
    refused = cluster.run("rehearse", "clean", cluster.name, env=there)
    assert refused.exit_code == 3, refused.text
    assert command in refused.stderr
    assert cluster.starts() == before
