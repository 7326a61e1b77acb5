"""The base image's two programs of cloud-init, with a stand-in for cloud-init and without a machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl_rehearsal.machines import cloud_init_stage
from clusterctl_rehearsal.machines.recipe import FILES

from tests.integration.rehearsed import wait_until

CLOUD_INIT = """\
import json, os, subprocess, sys, time
def main():
    before = os.environ.pop("BEFORE", None)  # or what it starts would start it again, without end
    inner = subprocess.run(json.loads(before), capture_output=True, text=True).stdout if before else ""
    facts = {"words": sys.argv[1:], "folder": os.getcwd(), "who": os.environ.get("WHO"), "inner": inner}
    print(json.dumps({**facts, "parent": os.getppid()}), flush=True)
    if "SIGNAL" in os.environ:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    while "WAITS_FOR" in os.environ and not os.path.exists(os.environ["WAITS_FOR"]):
        time.sleep(0.02)
    return int(os.environ.get("CODE", "0"))
"""
FIRST, INIT, CONFIG, FINAL = (["init", "--local"], *cloud_init_stage.STAGES)


@dataclass(frozen=True, kw_only=True)
class Boot:
    """Both programs in a folder; this process stands for systemd, which starts the stages."""

    folder: Path

    def begin(self, words: list[str], **variables: str) -> subprocess.Popen[str]:
        """A start of `/usr/bin/cloud-init`."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), **variables}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.argv(words), env=environment, cwd=self.folder, stdout=pipe, stderr=pipe, text=True, bufsize=1
        )

    def argv(self, words: list[str]) -> list[str]:
        return [sys.executable, "-IS", str(self.folder / "ask"), *words]

    def stage(self, words: list[str], **variables: str) -> tuple[int, dict[str, Any]]:
        """The exit code of a start, and the JSON that the stand-in printed."""
        begun = self.begin(words, **variables)
        out, err = begun.communicate(timeout=60)
        assert err == "", err
        printed: dict[str, Any] = json.loads(out)
        return begun.returncode, printed


@pytest.fixture
def boot() -> Iterator[Boot]:
    """After it no process with cloud-init's modules is left."""
    with tempfile.TemporaryDirectory() as place:  # short: the path of a socket has at most 107 bytes (unix(7))
        boot = Boot(folder=Path(place))
        changes = {
            cloud_init_stage.SOCKET: f"{place}/socket",
            cloud_init_stage.PROGRAM: f"{place}/program",
            "#!/usr/bin/python3": f"#!{sys.executable}",
            "os.getppid() == 1": f"os.getppid() == {os.getpid()}",
        }
        write_program(boot.folder / "ask", FILES["usr/bin/cloud-init"], changes)
        write_program(boot.folder / "program", FILES[cloud_init_stage.PROGRAM[1:]], changes)
        (boot.folder / "cloudinit/cmd").mkdir(parents=True)
        (boot.folder / "cloudinit/cmd/main.py").write_text(CLOUD_INIT)
        yield boot
        boot.stage(FINAL)


def write_program(path: Path, text: str, changes: Mapping[str, str]) -> None:
    for before, after in changes.items():
        text = text.replace(before, after)
    path.write_text(text)
    path.chmod(0o755)


def test_later_stages_are_run_by_the_first_ones_child_up_to_the_last(boot: Boot) -> None:
    assert boot.stage(FIRST)[1]["parent"] == os.getpid()
    code, init = boot.stage(INIT, WHO="systemd", CODE="3")
    assert (code, init["words"], init["folder"], init["who"]) == (3, INIT, str(boot.folder), "systemd")
    assert init["parent"] != os.getpid()
    assert boot.stage(CONFIG)[1] == {**init, "words": CONFIG, "who": None}
    assert boot.stage(FINAL)[1]["parent"] == init["parent"]
    assert not (boot.folder / "socket").exists()
    assert boot.stage(FINAL)[1]["parent"] == os.getpid(), "it runs without the modules now"


def test_a_stage_that_a_signal_ends_is_no_success_and_keeps_no_other_from_running(boot: Boot) -> None:
    boot.stage(FIRST)
    assert boot.stage(INIT, SIGNAL=str(int(signal.SIGKILL)))[0] == 256 - signal.SIGKILL
    assert boot.stage(CONFIG)[0] == 0


def test_where_the_process_with_the_modules_was_killed_a_stage_runs_by_itself(boot: Boot) -> None:
    boot.stage(FIRST)
    os.kill(boot.stage(INIT)[1]["parent"], signal.SIGKILL)
    code, printed = boot.stage(CONFIG, CODE="4")
    assert (code, printed["words"], printed["parent"]) == (4, CONFIG, os.getpid())


def test_a_stage_that_is_asked_for_while_the_last_one_runs_runs_by_itself_afterwards(boot: Boot) -> None:
    boot.stage(FIRST)
    over = boot.folder / "over"
    last = boot.begin(FINAL, WAITS_FOR=str(over))
    assert last.stdout is not None
    assert json.loads(last.stdout.readline())["words"] == FINAL
    asked = boot.begin(CONFIG, CODE="5")
    wait_until(lambda: sockets_of(boot.folder / "socket") == 3, what="both have connected", timeout_s=30)
    over.touch()
    assert last.wait(timeout=60) == 0
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, err, json.loads(out)["parent"]) == (5, "", os.getpid())
    last.communicate()


def sockets_of(path: Path) -> int:
    """How many there are at this path: the one that listens, and one for each connection, taken or not (proc(5))."""
    return sum(line.endswith(f" {path}") for line in Path("/proc/net/unix").read_text().splitlines())


def test_a_stage_that_a_script_of_another_stage_starts_runs_at_once(boot: Boot) -> None:
    boot.stage(FIRST)
    code, printed = boot.stage(INIT, BEFORE=json.dumps([sys.executable, "-IS", str(boot.folder / "ask"), *CONFIG]))
    assert (code, json.loads(printed["inner"])["words"]) == (0, CONFIG)
