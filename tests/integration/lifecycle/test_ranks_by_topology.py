"""`ranks: topology`: ordered once, delivered, and then kept until somebody asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.environment import DOMAIN

from tests.integration.rehearsed import Rehearsed, rehearsed

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SATURN = str(EXAMPLES / "guides" / "saturn")
MEETS = 'test "$(getent ahostsv4 "$SATURN_JOB_LEADER" | head -n 1 | cut -d " " -f 1)" = "$MASTER_ADDR"'


@pytest.fixture
def two_racks(tmp_path: Path) -> Iterator[Rehearsed]:
    """Four nodes that are only written down, by turns in two simulated racks, not yet up."""
    with rehearsed(tmp_path, machines="none", nodes=4, ranks="topology") as cluster:
        yield cluster


def ranks(cluster: Rehearsed) -> list[int]:
    """The rank of each slot, as `clusterctl nodes` has it."""
    rows = json.loads(cluster.ok("nodes", "--json"))["nodes"]
    return [row["rank"] for row in sorted(rows, key=lambda row: int(row["slot"]))]


def test_neighbours_have_neighbouring_ranks_and_keep_them(two_racks: Rehearsed) -> None:
    first = two_racks.run("up", str(two_racks.folder))
    assert first.exit_code == 0, first.text
    assert "by network topology (2 groups of neighbours, simulated): 2 nodes changed rank" in first.text
    assert ranks(two_racks) == [0, 2, 1, 3]
    assert two_racks.pulumi("preview", "--expect-no-changes").exit_code == 0

    two_racks.write(machines="none", settings={"racks": 4})
    two_racks.ok("replace", "--node", "1")
    assert ranks(two_racks) == [0, 2, 1, 3], "a replaced slot keeps its rank"
    again = two_racks.run("up", str(two_racks.folder), "--nodes", "5")
    assert "by network topology" not in again.text
    assert ranks(two_racks) == [0, 2, 1, 3, 4], "other racks change nothing, and a new slot comes last"

    two_racks.up("--reorder-ranks")
    assert ranks(two_racks) == [0, 2, 3, 4, 1]


def test_what_aws_tells_no_topology_of_is_in_the_order_of_slots(two_racks: Rehearsed) -> None:
    two_racks.write(machines="none", instance_type="g6.12xlarge", placement="none")
    done = two_racks.run("up", str(two_racks.folder))
    assert done.exit_code == 0, done.text
    assert "as they were: AWS gives no topology of g6.12xlarge" in done.text
    assert ranks(two_racks) == [0, 1, 2, 3]


def test_ranks_reach_the_nodes_which_then_meet_at_the_barrier(booted: Rehearsed) -> None:
    booted.write(machines="nspawn", nodes=3, ranks="topology")
    booted.up()
    output = booted.ok("ssh", "--node", "all", "--json", "--command", "echo $CLUSTERCTL_SLOT $NODE_RANK")
    rows = [json.loads(line) for line in output.splitlines()]
    assert sorted(row["stdout"] for row in rows if "stdout" in row) == ["0 0\n", "1 2\n", "2 1\n"]
    hostfile = booted.ok("ssh", "--node", "2", "--", "cut", "-d ", "-f1", "/etc/clusterctl/hostfile")
    assert hostfile.split() == [f"{booted.name}-{slot}" for slot in (0, 2, 1)]

    in_job = ("run", "--node", "1-2", "--launcher", "plain", "--workdir")
    booted.ok(*in_job, SATURN, "--", "sh", "-c", MEETS)
    refused = booted.run(*in_job, SATURN, "--", "peers.py")
    assert refused.exit_code == 1, refused.text
    assert f"is the cluster's rank 0, and this job's is {booted.name}-1.{DOMAIN}: run the job on all" in refused.text
    ring = booted.ok(*in_job, str(EXAMPLES / "all_reduce"), "--", "ring.py")
    assert f"rank 0 of 2 on {booted.name}-2: all-reduce sum 3, all ranks took part" in ring

    by_rank = f"ssh -o BatchMode=yes -o StrictHostKeyChecking=yes {booted.name}-1.{DOMAIN} hostname"
    assert booted.ok("ssh", "--node", "0", "--command", by_rank) == f"{booted.name}-2\n", "its name has a rank"

    booted.ok("ssh", "--node", "all", "--", "clusterctl-node", "barrier", "start", "--timeout", "30s")
    late = booted.run("ssh", "--node", "0-1", "--", "clusterctl-node", "barrier", "again", "--timeout", "1s")
    assert late.exit_code == 4
    assert f"not met in time, missing: {booted.name}-2" in late.text
