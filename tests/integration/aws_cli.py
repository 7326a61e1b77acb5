"""The AWS CLI as a client of a rehearsed region: it has its own models of AWS's API, not ours."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # answers of AWS's API

import pytest
from clusterctl_bootstrap.kept_texts import cache_folder
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient
from clusterctl_rehearsal.region.ending import end_region

from tests.integration.rehearsed import ROOT

SERVICES = (
    *("cloudwatch", "ec2", "efs", "fsx", "iam", "s3", "scheduler", "service-quotas", "ssm", "stepfunctions", "sts"),
)
ANSWER_S = 60.0


class AwsCli:
    """The AWS CLI, which has the region's endpoint and keys."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        assert select.select([self._process.stdout], [], [], ANSWER_S)[0], (words, f"no answer in {ANSWER_S:.0f} s")
        code, stdout, stderr = json.loads(self._process.stdout.readline())
        return code, stdout, stderr

    def __call__(self, *words: str) -> Any:
        """The command's answer, parsed; None where it printed nothing."""
        code, stdout, stderr = self.run(*words)
        assert code == 0, (words, stderr)
        return json.loads(stdout) if stdout.strip() else None

    def refusal(self, *words: str) -> str:
        """The stderr of a command that AWS refuses."""
        code, _, stderr = self.run(*words)
        assert code != 0, words
        return stderr


@contextmanager
def aws_cli(folder: Path) -> Iterator[AwsCli]:
    """The AWS CLI beside a new rehearsed region, in which nothing may be left at the end."""
    python = installed_python()
    plain = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environ = {**plain, "CLUSTERCTL_HOME": str(folder / "home"), "HOME": str(folder)}
    output = subprocess.run(
        [sys.executable, "-m", "clusterctl", "rehearse", "env"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    exports = dict(line.removeprefix("export ").partition("=")[::2] for line in output.splitlines())
    exports = {name: shlex.split(value)[0] for name, value in exports.items()}
    client = {"PATH": os.environ["PATH"], "HOME": str(folder), **exports, "AWS_PAGER": ""}
    script = Path(__file__).with_name("aws_cli_session.py")
    process = subprocess.Popen(
        [python, "-I", script, *SERVICES],
        env=client,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    home = rehearsal_home(environ)
    try:
        yield AwsCli(process)
        with RegionClient(home) as region:
            assert region.ask("list", {})["resources"] == [], "everything is ended"
    finally:
        assert process.stdin is not None
        process.stdin.close()
        os.killpg(process.pid, signal.SIGKILL)  # it is idle, or its command does not end
        process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()
        end_region(home)


def installed_python() -> Path:
    """The Python that has the AWS CLI, where scripts/aws-cli installs it."""
    version = str(tomllib.loads((ROOT / "scripts" / "versions.toml").read_text())["aws_cli"]["version"])
    python = cache_folder(os.environ) / "aws-cli" / version / "bin" / "python"
    if not python.exists():
        pytest.fail("no AWS CLI: run scripts/aws-cli first")
    return python
