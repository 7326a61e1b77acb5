"""The first process of a container becomes its program, or stays for what that leaves in the background."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NODE = [sys.executable, "-m", "clusterctl.on_node.job"]
SHOW = "import os; print(os.environ['A'] == 'b\\nc', os.environ.get('RANK'), os.environ['PATH'].split(':')[:3])"


@pytest.fixture
def variables(tmp_path: Path) -> str:
    path = tmp_path / "variables.json"
    path.write_text(json.dumps({"variables": {"A": "b\nc", "PATH": "/mine"}, "path_first": ["/job/bin", "/env/bin"]}))
    return str(path)


def output_of(*arguments: str) -> str:
    done = subprocess.run([*NODE, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_becomes_the_program_with_the_job_s_variables(variables: str) -> None:
    shown = output_of("inside", variables, "--", sys.executable, "-c", SHOW)
    assert shown == "True None ['/job/bin', '/env/bin', '/mine']\n"


def test_a_command_beside_the_ranks_has_the_job_s_variables_and_its_first_rank_s_number(
    variables: str, tmp_path: Path
) -> None:
    places = [str(tmp_path / "ranks"), str(tmp_path / "secrets"), variables]
    shown = output_of("join", "first", "-", "4", *places, "--", sys.executable, "-c", SHOW)
    assert shown == "True 4 ['/job/bin', '/env/bin', '/mine']\n"


def test_it_stays_until_a_daemon_ends_and_gives_the_code_of_what_started_it(tmp_path: Path) -> None:
    path = tmp_path / "variables.json"
    path.write_text(json.dumps({"variables": {}, "path_first": []}))
    argv = [
        *NODE,
        "attend",
        str(path),
        "--",
        "/bin/sh",
        "-c",
        "exec 3<&0; { read line <&3; echo $line; } & echo up; exit 3",
    ]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        assert running.stdout.readline() == "up\n"
        assert running.poll() is None
        running.stdin.write("late\n")
        running.stdin.close()
        assert running.stdout.readline() == "late\n"
        assert running.wait(60) == 3
