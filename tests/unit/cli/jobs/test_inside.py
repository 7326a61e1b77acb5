"""A command inside a job that runs: where it gets in, and that it never runs outside of the job."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import pytest
from clusterctl.on_node.job.container import ExecRequest, exec_argv
from clusterctl.on_node.job.inside import container_argv, keeper_of, rank_variables_now, run_inside
from clusterctl.on_node.job.layout import Layout, write_json
from clusterctl.on_node.job.processes import itself

from tests.unit.cli.jobs.job_specs import spec


def test_the_keeper_of_a_job_that_runs_is_named() -> None:
    assert keeper_of("train-1", {"job": "train-1", "keeper": [12, 3456]}) == (12, 3456)


@pytest.mark.parametrize("held", [None, {}, {"job": "train-1", "until_s": 5.0}])
def test_a_command_without_a_job_around_it_is_refused(held: Mapping[str, object] | None) -> None:
    with pytest.raises(ValueError, match="train-1 has just ended"):
        keeper_of("train-1", held)


def test_a_command_enters_a_container_as_the_job_s_user_and_with_a_terminal_where_there_is_one() -> None:
    plain = ExecRequest(
        engine="podman", name="c-0", uid=1000, gid=1001, folder="/code", has_terminal=False, terminal_type=""
    )
    known = ["--user", "1000:1001", "--workdir", "/code"]
    assert exec_argv(plain, ["ls", "a b"]) == ["podman", "exec", "--interactive", *known, "c-0", "ls", "a b"]
    seen = plain._replace(has_terminal=True, terminal_type="xterm")
    begin = ["podman", "exec", "--interactive", "--tty", *known, "--env", "TERM=xterm"]
    assert exec_argv(seen, ["sh"]) == [*begin, "c-0", "sh"]


@pytest.mark.parametrize(
    ("launcher", "rank", "number"),
    [("torchrun", "-", 0), ("torchrun", "5", 0), ("plain", "-", 0), ("plain", "4", 0), ("plain", "5", 1)],
)
def test_a_rank_s_container_is_its_own_or_its_launcher_s(tmp_path: Path, launcher: str, rank: str, number: int) -> None:
    layout = Layout(tmp_path)
    (tmp_path / "etc/clusterctl").mkdir(parents=True)
    write_json(layout.node_file, {"slot": 3})
    job = spec(launcher=launcher, user=pwd.getpwuid(os.getuid()).pw_name, image_id="sha256:0123")
    argv = container_argv(layout, job, rank, ["ls"], "/programs/1")
    name = f"clusterctl-first-1-{number}"
    folder = layout.attempt("first", 1)
    places = [str(folder / "ranks"), str(layout.secrets("first")), str(folder / f"environment-{number}.json")]
    inside = ["python3", "-IS", "/programs/1", "join", "first", rank, "4", *places, "--", "ls"]
    assert argv[argv.index(name) :] == [name, *inside]


@pytest.mark.parametrize("state", ["succeeded", "failed", "lost", "starting", "preparing"])
def test_a_command_gets_into_no_job_that_does_not_run(tmp_path: Path, state: str) -> None:
    layout = job_here(tmp_path, state)
    shown = "lost" if state == "preparing" else state  # nobody prepares it any more
    with pytest.raises(ValueError, match=f"first is {shown}: a command can run inside it only while it runs"):
        run_inside(layout, "first", "-", ["ls"])


@pytest.mark.parametrize("state", ["running", "stopping"])
def test_a_command_is_on_its_way_into_a_job_that_runs(tmp_path: Path, state: str) -> None:
    """It fails only at the keeper: here that is this process, whose argv has no `keep`."""
    layout = job_here(tmp_path, state)
    with pytest.raises(ValueError, match="not in list"):
        run_inside(layout, "first", "-", ["ls"])


def job_here(root: Path, state: str) -> Layout:
    """A job with an image, which this process keeps."""
    layout = Layout(root)
    layout.folder("first").mkdir(parents=True)
    (root / "run/clusterctl").mkdir(parents=True)
    write_json(layout.spec("first"), spec(image_id="sha256:0123"))
    row = {"job": "first", "attempt": 1, "slot": 3, "state": state, "since_s": 1.0, "boot_id": ""}
    write_json(layout.state("first"), row)
    if state != "preparing":
        layout.lease.mkdir(exist_ok=True)
        write_json(layout.lease / "first.json", {"job": "first", "by": "its keeper", "keeper": itself()})
    return layout


def process(proc: Path, pid: int, parent: int, start: int, **variables: str) -> None:
    """Adds to `proc` a process that began at the tick `start`, with these variables."""
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} {'0 ' * 17}{start} 0 0\n")
    (proc / str(pid) / "environ").write_bytes(
        b"".join(f"{name}={value}\0".encode() for name, value in variables.items())
    )


def test_a_command_has_the_variables_of_its_rank_and_of_no_other_process(tmp_path: Path) -> None:
    proc, ranks = tmp_path / "proc", tmp_path / "ranks"
    ranks.mkdir()
    (ranks / "5.pid").write_text("[40, 7]")
    process(proc, 40, 1, 7, RANK="5", CLUSTERCTL_JOB="first", WHOSE="the rank's parent")
    process(proc, 41, 40, 8, RANK="5", WHOSE="no job's")
    process(proc, 42, 40, 8, RANK="4", CLUSTERCTL_JOB="first", WHOSE="another rank's")
    process(proc, 43, 39, 8, RANK="5", CLUSTERCTL_JOB="first", WHOSE="another parent's")
    with pytest.raises(ValueError, match="rank 5 has ended"):
        rank_variables_now(ranks, "first", "5", os.getuid(), proc)
    process(proc, 44, 40, 8, RANK="5", CLUSTERCTL_JOB="first", WHOSE="the rank's")
    assert rank_variables_now(ranks, "first", "5", os.getuid(), proc)["WHOSE"] == "the rank's"
    with pytest.raises(ValueError, match="rank 5 has ended"):
        rank_variables_now(ranks, "second", "5", os.getuid(), proc)
    (ranks / "5.pid").write_text("[40, 6]")  # another process has its number by now
    with pytest.raises(ValueError, match="rank 5 has ended"):
        rank_variables_now(ranks, "first", "5", os.getuid(), proc)
