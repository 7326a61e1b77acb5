"""A job's spec, and what speaks against starting it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any  # what a node says

import pytest
from clusterctl.jobs.launcher import Launch
from clusterctl.jobs.spec import (
    FIRST_PORT,
    PORTS,
    JobRequest,
    checked_name,
    default_name,
    free_ports,
    in_use,
    make_spec,
    problems,
    program_on_nodes,
    refuse_owned_names,
)
from clusterctl.jobs.start import crowded, without_gpus
from clusterctl.on_node.job.launch import environment
from clusterctl_bootstrap.node.writing import names
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from tests.inventories import make_inventory
from tests.unit.cli.jobs.job_specs import spec

SETTINGS = {"cluster": "train", "slot": 1, "nodes": 4, "slot_cidr": "10.0.8.0/21", "ranks": [0, 3, 2, 1]}
"""What every node knows about the cluster."""
ONE_FOR_EACH = "--nproc auto runs one process for each GPU"
NODES = tuple(
    InventoryNode(slot=slot, rank=rank, name=f"train-{slot}", private_ip=f"10.0.8.{slot}", host_public_key="")
    for slot, rank in enumerate((0, 3, 2, 1))
)


def inventory() -> Inventory:
    return make_inventory(nodes=NODES)


def request(**changes: Any) -> JobRequest:
    fields: dict[str, Any] = {
        "inventory": inventory(),
        "nodes": (NODES[1], NODES[3]),
        "name": "first",
        "launch": Launch(launcher="torchrun", command=("train.py",)),
        "nproc": "auto",
        "grace_s": 30.0,
        "by": "ada@laptop",
    }
    return JobRequest(**{**fields, **changes})


def facts(slot: int, **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "slot": slot,
        "cluster_id": "0123456789ab",
        "generation": 1,
        "gpus": 8,
        "phase": "ready",
        "holders": [],
        "engine": "",
        "is_name_taken": False,
        "ports_in_use": [],
        "free_bytes": 1,
    }
    return {**fields, **changes}


def test_members_are_in_the_order_of_ranks_with_a_process_for_each_gpu() -> None:
    made = make_spec(request(), {1: facts(1), 3: facts(3, gpus=2)}, {})
    assert [(member["slot"], member["nproc"]) for member in made["members"]] == [(3, 2), (1, 8)]


@pytest.mark.parametrize("slots", [(0, 1), (1, 3), (1, 2), (1,), (3,), (0, 1, 2, 3)])
def test_saturn_s_name_of_the_leader_is_on_every_node_the_address_of_the_job_s_rank_0(slots: tuple[int, ...]) -> None:
    """Ranks that topology has ordered: `train-1` of Saturn's names is slot 3."""
    wanted = request(nodes=tuple(NODES[slot] for slot in slots))
    made = make_spec(wanted, {slot: facts(slot, generation=inventory().generation) for slot in slots}, {})
    for node_rank in range(len(slots)):
        found = environment(made, node_rank, {}, "/jobs/first")
        assert names(SETTINGS)[found["SATURN_JOB_LEADER"]] == found["MASTER_ADDR"]


def test_the_leader_is_an_address_where_the_nodes_may_know_other_ranks_than_this_computer() -> None:
    made = make_spec(request(), {slot: facts(slot, generation=inventory().generation - 1) for slot in (1, 3)}, {})
    assert environment(made, 0, {}, "/jobs/first")["SATURN_JOB_LEADER"] == "10.0.8.3"


@pytest.mark.parametrize(
    ("launcher", "nproc", "gpus", "expected"),
    [
        ("torchrun", "auto", 0, 1),
        ("torchrun", "4", 8, 4),
        ("plain", "auto", 8, 1),
        ("plain", "3", 8, 3),
        ("jax", "auto", 8, 1),
        ("tensorflow", "auto", 8, 1),
        ("mpi", "auto", 8, 8),
        ("accelerate", "auto", 0, 1),
    ],
)
def test_how_many_processes_run_on_a_node(launcher: str, nproc: str, gpus: int, expected: int) -> None:
    wanted = request(launch=Launch(launcher=launcher, command=("x",)), nproc=nproc, nodes=(NODES[0],))
    made = make_spec(wanted, {0: facts(0, gpus=gpus)}, {})
    assert made["members"][0]["nproc"] == expected


@pytest.mark.parametrize(
    ("launcher", "nproc", "names"),
    [
        ("torchrun", "auto", "Node 3: no GPUs, so one process each (--nproc N)"),
        ("torchrun", "2", ""),
        ("plain", "auto", ""),
    ],
)
def test_nodes_without_gpus_are_named_where_a_process_for_each_gpu_was_meant(
    launcher: str, nproc: str, names: str
) -> None:
    wanted = request(launch=Launch(launcher=launcher, command=("x",)), nproc=nproc)
    assert without_gpus(wanted, [{"slot": 1, "gpus": 8}, {"slot": 3, "gpus": 0}]) == names


@pytest.mark.parametrize(
    ("changes", "nproc", "reason"),
    [
        ({}, "auto", None),
        ({"phase": "installing"}, "auto", "Node 3 (train-3): not ready (installing)"),
        ({"cluster_id": "ffff"}, "auto", "another machine answers there"),
        ({"missing_program": "/opt/a.py"}, "auto", "Node 3 (train-3): there is no /opt/a.py"),
        ({"generation": 2}, "auto", "different memberships (generations [1, 2])"),
        ({}, "9", f"Nodes 1,3: --nproc 9 is more than the 8 GPUs of each: {ONE_FOR_EACH}"),
        ({"gpus": 1}, "9", f"Node 3: --nproc 9 is more than the 1 GPU of each: {ONE_FOR_EACH}"),
        ({"gpus": 0}, "9", f"Node 1: --nproc 9 is more than the 8 GPUs of each: {ONE_FOR_EACH}"),
        ({"gpus": 4}, "9", f"Node 3: --nproc 9 is more than the 4 GPUs of each: {ONE_FOR_EACH}"),
    ],
)
def test_what_speaks_against_a_start_is_told(changes: dict[str, Any], nproc: str, reason: str | None) -> None:
    found = problems(request(nproc=nproc), {1: facts(1), 3: facts(3, **changes)})
    assert (found == []) if reason is None else any(reason in problem for problem in found)


@pytest.mark.parametrize(
    ("held", "gpus", "messages"),
    [
        ([], None, []),
        ([{"job": "a", "gpus": None}], None, ["Node 3 (train-3): in use by the job a"]),
        ([{"job": "a", "gpus": [0, 1]}, {"job": "b", "gpus": [2]}], 5, []),
        (
            [{"job": "a", "gpus": [0, 1]}, {"job": "b", "gpus": [2]}],
            6,
            ["Node 3 (train-3): in use by the jobs a, b; of its 8 GPUs 5 are free, and --gpus is 6"],
        ),
        ([{"job": "a", "gpus": [0]}], None, ["Node 3 (train-3): in use by the job a"]),
    ],
)
def test_nodes_are_in_use_where_other_jobs_leave_too_few_gpus(
    held: list[dict[str, Any]], gpus: int | None, messages: list[str]
) -> None:
    assert in_use(request(gpus=gpus), {1: facts(1), 3: facts(3, holders=held)}) == messages


def test_a_job_of_some_gpus_has_as_many_processes() -> None:
    made = make_spec(request(gpus=3), {1: facts(1), 3: facts(3, holders=[{"job": "a", "gpus": [0, 2]}])}, {})
    assert [(row["gpus"], row["nproc"], row["gpu_indices"]) for row in made["members"]] == [
        (3, 3, [1, 3, 4]),
        (3, 3, [0, 1, 2]),
    ]
    found = problems(request(gpus=3, nproc="4"), {1: facts(1), 3: facts(3)})
    most = "is more than the 3 GPUs that the job takes of the 8 of each"
    assert found == [f"Nodes 1,3: --nproc 4 {most}: {ONE_FOR_EACH}, or use --gpus 4"]
    found = problems(request(gpus=3, nproc="9"), {1: facts(1), 3: facts(3)})
    assert found == [f"Nodes 1,3: --nproc 9 {most}: {ONE_FOR_EACH}"]
    assert problems(request(gpus=8), {1: facts(1), 3: facts(3)}) == []
    assert problems(request(gpus=9), {1: facts(1), 3: facts(3)}) == [
        "Nodes 1,3: --gpus 9 is more than the 8 GPUs of each: use --gpus 8 or fewer"
    ]
    assert problems(request(gpus=1), {1: facts(1, gpus=0), 3: facts(3)}) == [
        "Node 1: --gpus 1 is more than the 0 GPUs of each: leave --gpus out"
    ]


def test_which_gpus_a_job_of_some_sees_is_not_its_environment_s_to_say() -> None:
    chosen = {"CUDA_VISIBLE_DEVICES": "0"}
    assert make_spec(request(environment=chosen), {1: facts(1), 3: facts(3)}, {})["environment"] == chosen
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES: the job sets it itself"):
        make_spec(request(environment=chosen, gpus=3), {1: facts(1), 3: facts(3)}, {})


def test_a_name_that_any_node_of_the_cluster_knows_is_taken() -> None:
    found = problems(request(), {1: facts(1), 3: facts(3)}, named=[2, 0])
    assert found == ["Nodes 0,2: a job of the name first was there already: choose another --name"]


@pytest.mark.parametrize("name", ["MASTER_ADDR", "RANK", "WORLD_SIZE", "TF_CONFIG", "PET_NNODES", "CLUSTERCTL_JOB"])
def test_a_variable_that_the_job_sets_is_refused_as_a_value_and_as_a_secret(name: str) -> None:
    for changes in ({"environment": {name: "1"}}, {"secrets": [name]}):
        with pytest.raises(UsageError, match=f"{name}: the job sets it itself"):
            refuse_owned_names(spec(**changes))


def test_ports_that_are_in_use_somewhere_are_passed_over() -> None:
    first, second = free_ports("first", [], count=2)
    assert free_ports("first", [first], count=2) == (second, second + 1)
    with pytest.raises(UsageError, match="fewer than 2 of the ports"):
        free_ports("first", range(FIRST_PORT, FIRST_PORT + PORTS), count=2)


def test_each_process_of_a_node_has_a_port_for_tensorflow() -> None:
    made = make_spec(request(), {1: facts(1), 3: facts(3, gpus=2)}, {})
    assert len({made["master_port"], made["channel_port"], made["jax_port"], *made["tf_ports"]}) == 3 + 8


@pytest.mark.parametrize("launcher", ["accelerate", "deepspeed-runner"])
def test_launchers_that_want_as_many_processes_everywhere_are_refused_on_other_nodes(launcher: str) -> None:
    uneven = request(launch=Launch(launcher=launcher, command=("x",)))
    with pytest.raises(UsageError, match="these have train-3 2, train-1 8"):
        make_spec(uneven, {1: facts(1), 3: facts(3, gpus=2)}, {})
    assert make_spec(uneven, {1: facts(1), 3: facts(3)}, {})["launcher"] == launcher


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a/b", "..", "x" * 41])
def test_a_name_that_is_no_file_s_name_everywhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="lower-case letters"):
        checked_name(name)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("src/Train_GPT.py", "train-gpt-1123-101500-3f9a"),
        ("./…", "job-1123-101500-3f9a"),
        ("x" * 99, "x" * 22 + "-1123-101500-3f9a"),
    ],
)
def test_the_default_name_is_one_that_a_job_may_have(program: str, expected: str) -> None:
    name = default_name([program], datetime(2026, 11, 23, 10, 15, tzinfo=UTC), "3f9a")
    assert checked_name(name) == expected


def test_a_node_without_a_container_engine_is_named() -> None:
    words = {1: facts(1, engine="docker"), 3: facts(3)}
    assert problems(request(image="a:1"), words) == [
        "Node 3 (train-3): has neither docker nor podman, so --image cannot run there"
    ]
    assert problems(request(), words) == []


def test_what_does_not_work_in_containers_is_refused() -> None:
    words = {1: facts(1, engine="docker"), 3: facts(3, engine="podman")}
    assert make_spec(request(image="a:1"), words, {})["image"] == "a:1"
    for python in ("conda:train", "~/py/bin/python", "python3.12"):
        with pytest.raises(UsageError, match=f"--python {python} with --image: write the interpreter's path inside"):
            make_spec(request(image="a:1", python=python), words, {})
    with pytest.raises(UsageError, match="--sudo with --image: root in a container would be the node's root"):
        make_spec(request(image="a:1", is_sudo=True), words, {})


def test_a_rehearsed_job_of_many_processes_is_said_to_start_slowly() -> None:
    note = "rehearsed: 32 processes share this computer's 2 processors, which may take minutes to start them; "
    assert crowded(32, is_rehearsal=True, processors=2) == f"{note}--nproc 1 starts one on each node"
    assert crowded(8, is_rehearsal=True, processors=2) == ""
    assert crowded(32, is_rehearsal=False, processors=2) == "", "machines of AWS have processors of their own"


@pytest.mark.parametrize(
    ("command", "changes", "asked"),
    [
        (("/opt/a.py", "x"), {}, "/opt/a.py"),
        (("a.py",), {}, ""),
        (("nvidia-smi",), {}, ""),
        (("/opt/a.py",), {"image": "a:1"}, ""),
        (("/opt/a.py",), {"setup": "make"}, ""),
        (("/tmp/a.py",), {"has_own_tmp": True}, ""),
    ],
)
def test_a_program_by_its_path_is_asked_for_unless_the_job_brings_it(
    command: tuple[str, ...], changes: dict[str, Any], asked: str
) -> None:
    assert program_on_nodes(request(launch=Launch(launcher="plain", command=command), **changes)) == asked
