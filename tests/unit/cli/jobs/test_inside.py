"""A command inside a job that runs: where it gets in, and that it never runs outside of the job."""

from __future__ import annotations

import dataclasses
import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import pytest
from clusterctl.on_node.job.container import ExecRequest, exec_argv
from clusterctl.on_node.job.inside import container_argv, keeper_of
from clusterctl.on_node.job.layout import Layout, write_json

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
    seen = dataclasses.replace(plain, has_terminal=True, terminal_type="xterm")
    begin = ["podman", "exec", "--interactive", "--tty", *known, "--env", "TERM=xterm"]
    assert exec_argv(seen, ["sh"]) == [*begin, "c-0", "sh"]


@pytest.mark.parametrize(
    ("launcher", "rank", "number"),
    [("torchrun", "-", 0), ("torchrun", "5", 0), ("plain", "-", 0), ("plain", "4", 0), ("plain", "5", 1)],
)
def test_a_rank_s_container_is_its_own_or_its_launcher_s(tmp_path: Path, launcher: str, rank: str, number: int) -> None:
    layout = Layout(tmp_path)
    (tmp_path / "etc/clusterctl").mkdir(parents=True)
    write_json(tmp_path / "etc/clusterctl/node.json", {"slot": 3})
    job = spec(launcher=launcher, user=pwd.getpwuid(os.getuid()).pw_name, image_id="sha256:0123")
    argv = container_argv(layout, job, rank, ["ls"], "/programs/1")
    name = f"clusterctl-first-1-{number}"
    folder = layout.attempt("first", 1)
    places = [str(folder / "ranks"), str(layout.secrets("first")), str(folder / f"environment-{number}.json")]
    inside = ["python3", "-I", "/programs/1", "join", "first", rank, "4", *places, "--", "ls"]
    assert argv[argv.index(name) :] == [name, *inside]
