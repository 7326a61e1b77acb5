"""What each node runs, and what it tells the ranks: the job's own nodes, never the cluster's."""

from __future__ import annotations

import json
import re

import pytest
from clusterctl.on_node.job import launch
from clusterctl_bootstrap.node.environment import variables

from tests.unit.cli.jobs.job_specs import ODD, spec

FOUR_NODES = {
    "slot": 3,
    "rank": 3,
    "nodes": 4,
    "gpus_per_node": 8,
    "slot_cidr": "10.0.8.0/21",
    "cluster": "train",
    "cluster_id": "0123456789ab",
    "generation": 1,
    "env": {"MINE": "kept"},
}
CLUSTER = {row.name: row.value for row in variables(FOUR_NODES)} | {"PET_NNODES": "4", "SLURM_NTASKS": "4"}
OF_THE_CLUSTER = {"CLUSTERCTL_CLUSTER", "CLUSTERCTL_ID", "CLUSTERCTL_GENERATION", "CLUSTERCTL_SLOT", "SATURN_JOB_RUN"}
OF_THE_CLUSTER |= {"SATURN_INTERNAL_SUBDOMAIN", "SATURN_NAMESPACE", "MINE"}
"""What is the same in a job as outside of it."""


def test_torchrun_meets_at_the_job_s_first_node_and_restarts_nothing() -> None:
    assert launch.argv(spec(), 1, ["parent", "--"]) == [
        [
            *("python3", "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", "1", "--nproc-per-node", "2"),
            *("--rdzv-backend", "static", "--master-addr", "10.0.8.1", "--master-port", "28100"),
            *("--rdzv-id", "first-1", "--max-restarts", "0", "--role", "a"),
            *("--no-python", "parent", "--", "python3", "-u", "train.py", *ODD),
        ]
    ]


def test_a_plain_program_is_started_once_for_each_process_word_by_word() -> None:
    plain = spec(launcher="plain", command=["./run", *ODD])
    assert launch.argv(plain, 1, ["parent", "--"]) == [["parent", "--", "./run", *ODD]] * 2
    assert [launch.rank_environment(plain, 1, local)["RANK"] for local in range(2)] == ["4", "5"]


def test_ranks_and_addresses_are_the_job_s() -> None:
    found = launch.environment(spec(), 1, CLUSTER, "/jobs/first")
    assert {name: found[name] for name in ("NODE_RANK", "NNODES", "WORLD_SIZE", "NPROC_PER_NODE")} == {
        "NODE_RANK": "1",
        "NNODES": "2",
        "WORLD_SIZE": "6",
        "NPROC_PER_NODE": "2",
    }
    assert found["CLUSTERCTL_FIRST_RANK"] == "4"
    assert found["MASTER_ADDR"] == found["FLOW_MAIN_IP"] == found["DSTACK_MASTER_NODE_IP"] == "10.0.8.1"
    assert found["SKYPILOT_NODE_IPS"] == found["DSTACK_NODES_IPS"] == "10.0.8.1\n10.0.8.3"
    assert json.loads(found["TF_CONFIG"]) == {
        "cluster": {"worker": ["10.0.8.1:2222", "10.0.8.3:2222"]},
        "task": {"type": "worker", "index": 1},
    }
    assert found["EPOCHS"] == "3"
    assert found["MINE"] == "kept"


def test_nothing_of_the_whole_cluster_is_left_in_a_job_s_environment() -> None:
    found = launch.environment(spec(), 1, CLUSTER, "/jobs/first")
    changed = {name for name in CLUSTER if found.get(name) != CLUSTER[name]}
    kept = set(CLUSTER) - changed - OF_THE_CLUSTER
    # Same words for another reason: eight GPUs and the ports that frameworks have everywhere.
    assert kept == {"SKYPILOT_NUM_GPUS_PER_NODE", "DSTACK_GPUS_PER_NODE", "TF_PORT"}
    assert not any(re.search(r"10\.0\.8\.[02]\b", value) for value in found.values())
    assert not any(name.startswith(("PET_", "SLURM_")) for name in found)


@pytest.mark.parametrize("slot", [0, 2])
def test_a_node_outside_the_job_has_no_rank_in_it(slot: int) -> None:
    with pytest.raises(ValueError, match="not in list"):
        launch.member_of(spec(), slot)


def test_the_coordinator_is_the_lowest_slot_though_ranks_may_be_ordered_otherwise() -> None:
    members = spec()["members"]
    assert launch.coordinator_of(spec(members=members[::-1]))["slot"] == 1


def test_the_hostfile_names_the_job_s_nodes() -> None:
    assert launch.hostfile(spec()) == "train-1 slots=4\ntrain-3 slots=2\n"
