"""What each node runs, and what it tells the ranks: the job's own nodes, never the cluster's."""

from __future__ import annotations

import json
import re

import pytest
from clusterctl.on_node.job import launch
from clusterctl_bootstrap.node.environment import variables

from tests.unit.cli.jobs.job_specs import spec

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
"""Variables that are the same in a job as outside of it."""


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
        "cluster": {"worker": ["10.0.8.1:28103", "10.0.8.3:28103"]},
        "task": {"type": "worker", "index": 1},
    }
    assert found["EPOCHS"] == "3"
    assert found["MINE"] == "kept"


def test_a_job_that_an_older_clusterctl_started_has_its_leader_s_address() -> None:
    assert "leader" not in spec()
    assert launch.environment(spec(), 1, CLUSTER, "/jobs/first")["SATURN_JOB_LEADER"] == "10.0.8.1"


def test_nothing_of_the_whole_cluster_is_left_in_a_job_s_environment() -> None:
    found = launch.environment(spec(), 1, CLUSTER, "/jobs/first")
    changed = {name for name in CLUSTER if found.get(name) != CLUSTER[name]}
    kept = set(CLUSTER) - changed - OF_THE_CLUSTER
    # The job sets these too, to the value that the cluster's have: eight GPUs.
    assert kept == {"SKYPILOT_NUM_GPUS_PER_NODE", "DSTACK_GPUS_PER_NODE"}
    assert not any(re.search(r"10\.0\.8\.[02]\b", value) for value in found.values())
    assert not any(name.startswith(("PET_", "SLURM_")) for name in found)


@pytest.mark.parametrize("slot", [0, 2])
def test_a_node_outside_the_job_has_no_rank_in_it(slot: int) -> None:
    with pytest.raises(ValueError, match="not in list"):
        launch.member_of(spec(), slot)


def test_the_coordinator_is_the_lowest_slot_though_ranks_may_be_ordered_otherwise() -> None:
    members = spec()["members"]
    assert launch.coordinator_of(spec(members=members[::-1]))["slot"] == 1


def test_a_process_of_tensorflow_or_jax_knows_which_it_is_and_its_own_port() -> None:
    found = launch.rank_environment(spec(launcher="tensorflow"), 1, 1)
    assert json.loads(found["TF_CONFIG"]) == {
        "cluster": {
            "worker": [
                *("10.0.8.1:28103", "10.0.8.1:28104", "10.0.8.1:28105", "10.0.8.1:28106"),
                *("10.0.8.3:28103", "10.0.8.3:28104"),
            ]
        },
        "task": {"type": "worker", "index": 5},
    }
    assert (found["RANK"], found["TF_PORT"]) == ("5", "28104")
    assert (found["JAX_NUM_PROCESSES"], found["JAX_PROCESS_ID"], found["JAX_LOCAL_DEVICE_IDS"]) == ("6", "5", "1")


def test_one_process_of_jax_has_all_gpus_of_its_node() -> None:
    members = [{**member, "nproc": 1, "gpus": gpus} for member, gpus in zip(spec()["members"], (4, 0), strict=True)]
    found = [launch.rank_environment(spec(members=members), rank, 0)["JAX_LOCAL_DEVICE_IDS"] for rank in range(2)]
    assert found == ["0,1,2,3", "0"]


def test_a_job_of_some_gpus_sees_those_alone() -> None:
    members = [{**spec()["members"][0], "gpu_indices": [4, 5]}, spec()["members"][1]]
    found = [launch.environment(spec(members=members), rank, {}, "/j").get("CUDA_VISIBLE_DEVICES") for rank in range(2)]
    assert found == ["4,5", None]


def test_an_ipv6_address_before_a_port_has_brackets_and_alone_it_has_none() -> None:
    members = [dict(member, address=f"fd00::{member['slot']}") for member in spec()["members"]]
    found = launch.environment(spec(members=members), 1, CLUSTER, "/jobs/first")
    assert (found["MASTER_ADDR"], found["SKYPILOT_NODE_IPS"]) == ("fd00::1", "fd00::1\nfd00::3")
    assert found["JAX_COORDINATOR_ADDRESS"].startswith("[fd00::1]:")
    assert json.loads(found["TF_CONFIG"])["cluster"]["worker"] == ["[fd00::1]:28103", "[fd00::3]:28103"]
    ranks = json.loads(launch.rank_environment(spec(members=members), 1, 0)["TF_CONFIG"])
    assert ranks["cluster"]["worker"][0].startswith("[fd00::1]:")
