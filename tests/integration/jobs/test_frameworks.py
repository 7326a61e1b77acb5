"""Accelerate, DeepSpeed, JAX and TensorFlow really train on two nodes, by the launchers that `run` has for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # parsed JSON

import pytest

from tests.integration.jobs import framework_programs
from tests.integration.jobs.installed import need_framework, need_torch
from tests.integration.jobs.job_folders import new_name
from tests.integration.jobs.left_of_job import left_in_the_end
from tests.integration.rehearsed import Done, Rehearsed


@dataclass(frozen=True, kw_only=True)
class Way:
    """A launcher, and what it starts."""

    launcher: str
    framework: str
    program: str


ACCELERATE = Way(launcher="accelerate", framework="accelerate", program=framework_programs.ACCELERATE)
DEEPSPEED = Way(launcher="deepspeed", framework="deepspeed", program=framework_programs.DEEPSPEED)
RUNNER = Way(launcher="deepspeed-runner", framework="deepspeed", program=framework_programs.DEEPSPEED)
JAX = Way(launcher="jax", framework="jax", program=framework_programs.JAX)
TENSORFLOW = Way(launcher="tensorflow", framework="tensorflow", program=framework_programs.TENSORFLOW)
GREETING = 'import json, os\nprint("result", json.dumps({"rank": int(os.environ["RANK"])}))\n'
"""Loads nothing: what succeeds here is the launcher."""
UPON_TORCH = ("accelerate", "deepspeed")
ONE_EACH = ("--nproc", "1")
BOTH_ON_ONE_NODE = ("--nproc", "2", "--node", "0")
"""For half as many launchers, each of which loads torch."""


def marked(way: Way) -> Any:  # pytest's ParameterSet is not public
    marks = [pytest.mark.framework(way.framework), *([pytest.mark.torch] if way.framework in UPON_TORCH else [])]
    return pytest.param(way, id=way.launcher, marks=marks)


@pytest.fixture
def cluster(process_pair: Rehearsed) -> Rehearsed:
    """Two process machines that are up, and see the frameworks that were installed."""
    return process_pair


def train(cluster: Rehearsed, folder: Path, way: Way, name: str, *words: str, ranks: Sequence[str] = ONE_EACH) -> Done:
    """The end of a job of two ranks: one on each node, if nothing else is said."""
    need_framework(way.framework)
    if way.framework in UPON_TORCH:
        need_torch()
    (folder / "train.py").write_text(way.program)
    options = ("--launcher", way.launcher, *ranks, "--grace", "1s", "--name", name, "--workdir", str(folder))
    # Nothing is compiled; without the second variable DeepSpeed loads torch's compiler, 1.3 s of the processor a rank.
    environment = ("--env", f"PYTHONPATH=/opt/{way.framework}", "--env", "TORCHDYNAMO_DISABLE=1")
    return cluster.run("run", *options, *environment, "--", "train.py", *words)


def results_of(done: Done) -> list[dict[str, Any]]:
    """The JSON that each rank printed, by rank."""
    lines = [line.partition(" result ")[2] for line in done.stdout.splitlines() if " result {" in line]
    return sorted((json.loads(line) for line in lines), key=lambda row: int(row["rank"]))


@pytest.mark.parametrize("way", [marked(way) for way in (DEEPSPEED, JAX, TENSORFLOW)])
def test_two_nodes_train_as_one(cluster: Rehearsed, tmp_path: Path, way: Way) -> None:
    done = train(cluster, tmp_path, way, new_name())
    assert done.exit_code == 0, done.text
    assert_trained_as_one(done)
    first, second = results_of(done)
    if way is JAX:
        assert [(row["sum"], row["gathered"]) for row in (first, second)] == [(3.0, [1.0, 2.0])] * 2
    if way is DEEPSPEED:
        assert first["words"] == []


@pytest.mark.parametrize("way", [marked(way) for way in (ACCELERATE, RUNNER)])
def test_two_nodes_train_as_one_until_a_rank_fails_which_is_named(cluster: Rehearsed, tmp_path: Path, way: Way) -> None:
    """Both in one job, as each loads torch in four processes or six."""
    name = new_name()
    done = train(cluster, tmp_path, way, name, "fail")
    assert_trained_as_one(done)
    assert_failed(cluster, name, done)
    if way is RUNNER:
        assert results_of(done)[0]["words"] == ["--local_rank=0", "fail"]


@pytest.mark.parametrize("way", [marked(replace(way, program=GREETING)) for way in (ACCELERATE, RUNNER)])
def test_a_job_whose_ranks_succeed_ends_with_0(cluster: Rehearsed, tmp_path: Path, way: Way) -> None:
    done = train(cluster, tmp_path, way, new_name(), ranks=BOTH_ON_ONE_NODE)
    assert done.exit_code == 0, done.text
    assert [row["rank"] for row in results_of(done)] == [0, 1]


@pytest.mark.parametrize("way", [marked(way) for way in (JAX, TENSORFLOW)])
def test_the_rank_that_fails_ends_the_training_and_is_named(cluster: Rehearsed, tmp_path: Path, way: Way) -> None:
    name = new_name()
    assert_failed(cluster, name, train(cluster, tmp_path, way, name, "fail"))


def assert_trained_as_one(done: Done) -> None:
    assert [(row["rank"], row["ranks"]) for row in results_of(done)] == [(0, 2), (1, 2)], done.text
    first, second = results_of(done)
    assert first["losses"] != second["losses"], "each has data of its own"
    assert first["weights"] == second["weights"]
    for row in (first, second):
        assert row["losses"][-1] < row["losses"][0] / 2


def assert_failed(cluster: Rehearsed, name: str, done: Done) -> None:
    assert done.exit_code == 7, done.text
    assert f"{name}: failed: Node 1 ({cluster.name}-1): rank 1 (local rank 0) exited with code 7" in done.stderr
    assert left_in_the_end(cluster, name) == ""
