"""The argv of every launcher on the nodes of a job on slots 1 and 3, and the files that they read."""

from __future__ import annotations

import json
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import launchers
from clusterctl.on_node.job.rank import with_local_rank
from clusterctl.on_node.job.rank_place import rank_variables

from tests.unit.cli.jobs.job_specs import ODD, spec

PARENT = ["parent"]
FOLDER = "/jobs/first"
SCRIPT = ("--", "python3", "-u", "train.py", *ODD)
EVEN = [{**member, "nproc": 2} for member in spec()["members"]]


def argv(node_rank: int, **changes: Any) -> list[list[str]]:
    return launchers.argv(spec(**changes), node_rank, PARENT, FOLDER)


@pytest.mark.parametrize("launcher", ["torchrun", "deepspeed"])
def test_torchrun_meets_at_the_job_s_first_node_and_restarts_nothing(launcher: str) -> None:
    assert argv(1, launcher=launcher) == [
        [
            *("python3", "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", "1", "--nproc-per-node", "2"),
            *("--rdzv-backend", "static", "--master-addr", "10.0.8.1", "--master-port", "28100"),
            *("--rdzv-id", "first-1", "--max-restarts", "0", "--role", "a"),
            *("--no-python", "parent", *SCRIPT),
        ]
    ]


@pytest.mark.parametrize("launcher", ["plain", "tensorflow"])
def test_a_plain_program_is_started_once_for_each_process_word_by_word(launcher: str) -> None:
    assert argv(1, launcher=launcher, command=["./run", *ODD]) == [["parent", "--", "./run", *ODD]] * 2


def test_accelerate_is_told_the_total_and_reads_no_file_of_the_person_s_cache() -> None:
    changes: dict[str, Any] = {"launcher": "accelerate", "launcher_options": ["--mixed_precision", "bf16"]}
    assert argv(1, members=EVEN, **changes) == [
        [
            *("python3", "-m", "accelerate.commands.launch", "--config_file", "/jobs/first/accelerate.json"),
            *("--num_processes", "4", "--num_machines", "2", "--machine_rank", "1"),
            *("--main_process_ip", "10.0.8.1", "--main_process_port", "28100", "--rdzv_backend", "static"),
            *("--max_restarts", "0", "--gpu_ids", "all", "--deepspeed_multinode_launcher", "standard"),
            *("--mixed_precision", "bf16", "--no_python", "parent", *SCRIPT),
        ]
    ]
    file = json.loads(launchers.files(spec(members=EVEN, **changes), "", "")["accelerate.json"])
    assert (file["distributed_type"], file["num_processes"]) == ("MULTI_GPU", 4)


@pytest.mark.parametrize("option", ["--config_file=fsdp.yaml", "--config-file"])
def test_a_file_for_accelerate_that_a_person_names_is_the_only_one(option: str) -> None:
    (words,) = argv(0, launcher="accelerate", launcher_options=[option, "fsdp.yaml"][: 1 if "=" in option else 2])
    assert "/jobs/first/accelerate.json" not in words


def test_one_process_of_accelerate_s_is_not_several_gpus() -> None:
    single = spec(launcher="accelerate", members=[{**EVEN[0], "nproc": 1}])
    assert json.loads(launchers.files(single, "", "")["accelerate.json"])["distributed_type"] == "NO"


def test_deepspeed_s_own_runner_gets_a_hostfile_and_never_uses_ssh() -> None:
    changes: dict[str, Any] = {"launcher": "deepspeed-runner", "launcher_options": [], "members": EVEN}
    assert argv(1, **changes) == [
        [
            *("python3", "-m", "deepspeed.launcher.runner", "--hostfile", "/jobs/first/hostfile"),
            *("--no_ssh", "--node_rank", "1", "--master_addr", "10.0.8.1", "--master_port", "28100"),
            *("--no_local_rank", "--no_python", "parent", "--local-rank-behind=3", *SCRIPT),
        ]
    ]
    assert launchers.hostfile(spec(**changes)) == "train-1 slots=2\ntrain-3 slots=2\n"


def test_deepspeed_s_runner_is_told_which_gpus_the_job_has() -> None:
    members = [{**member, "gpu_indices": [5, 7]} for member in EVEN]
    (words,) = argv(0, launcher="deepspeed-runner", launcher_options=["--no_local_rank"], members=members)
    assert words[words.index("--include") + 1] == "train-1:5,7@train-3:5,7"
    assert not any(word.startswith("--local-rank-behind") for word in words)
    assert launchers.hostfile(spec(launcher="deepspeed-runner", members=members)) == (
        "train-1 slots=8\ntrain-3 slots=8\n"
    )


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["train.py", "-m"], ["python3", "-u", "/jobs/first/jax_main.py", "train.py", "-m"]),
        (["python3", "-m", "pkg.train", "x"], ["python3", "/jobs/first/jax_main.py", "-m", "pkg.train", "x"]),
        (["python3", "-B", "a.py"], ["python3", "-B", "/jobs/first/jax_main.py", "a.py"]),
    ],
)
def test_jax_main_stands_before_the_script_or_module(command: list[str], expected: list[str]) -> None:
    assert argv(0, launcher="jax", command=command) == [["parent", "--", *expected]] * 4
    assert launchers.files(spec(launcher="jax"), "", "text")["jax_main.py"] == "text"


def test_mpirun_runs_on_the_first_node_alone_and_asks_our_agent() -> None:
    changes: dict[str, Any] = {"launcher": "mpi", "launcher_options": ["-x", "A=1"], "command": ["./hello", *ODD]}
    assert argv(0, **changes) == [
        [
            *("mpirun", "--hostfile", "/jobs/first/hostfile", "-np", "6", "--map-by", "slot", "--bind-to", "none"),
            *("-x", "A=1", "parent", "--", "./hello", *ODD),
        ]
    ]
    assert argv(1, **changes) == []
    agent = launchers.files(spec(**changes), "/programs/p.pyz", "")["mpi-agent"]
    assert agent == '#!/bin/sh\nexec python3 -IS /programs/p.pyz mpi-agent "$@"\n'
    variables = launchers.mpi_variables(FOLDER)
    assert variables["OMPI_MCA_plm_rsh_agent"] == variables["PRTE_MCA_plm_ssh_agent"] == "/jobs/first/mpi-agent"


def test_the_hostfile_names_the_job_s_nodes() -> None:
    assert launchers.hostfile(spec()) == "train-1 slots=4\ntrain-3 slots=2\n"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "6", "OMPI_COMM_WORLD_RANK": "9"},
            {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "6"},
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "4",
                "OMPI_COMM_WORLD_SIZE": "6",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                "WORLD_SIZE": "32",
            },
            {"RANK": "4", "WORLD_SIZE": "6", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"},
        ),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}),
        ({"CLUSTERCTL_FIRST_RANK": "4"}, {"RANK": "4", "LOCAL_RANK": "0"}),
    ],
)
def test_a_rank_s_parent_knows_its_rank_whoever_started_it(
    environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert rank_variables(environment) == expected


def test_a_script_of_deepspeed_s_gets_its_local_rank_where_deepspeed_puts_it() -> None:
    command = ["python3", "-u", "train.py", "x"]
    assert with_local_rank(["--local-rank-behind=3"], command, 1) == [*command[:3], "--local_rank=1", "x"]
    assert with_local_rank([], command, 1) == command
