"""The main program of a workflow's task, as its node runs it, without a cluster: how commands end, what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.warned import AWS, WHY
from clusterctl.on_node.workflow import task
from clusterctl.on_node.workflow.bucket_versions import complete_versions

from tests.integration.rehearsed import ROOT, wait_until

STUBBORN = (
    "import sys; from clusterctl.on_node.workflow.command import Command; print(Command(print, 1.0).run(%r, {}, '/'))"
)
MAIN = """\
import sys
from pathlib import Path
from clusterctl.on_node.workflow.task import main
sys.exit(main(Path(%r)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path


def started(folder: Path, command: Sequence[str], **more: Any) -> subprocess.Popen[str]:
    """The task's program under way."""
    words = {
        "command": list(command),
        **dict.fromkeys(("files", "mounts", "inputs", "barrier", "again", "checkpoints"), ()),
        "output": str(folder / "out"),
        "outputs": [{"path": "", "bucket": str(folder / "bucket"), "version": "w-1-0", "regex": ""}],
        **more,
    }
    (folder / task.WORDS).write_text(json.dumps(words))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cli"), "CLUSTERCTL_WARNING_FILE": str(folder / "warning.json")}
    env["PYTHONIOENCODING"] = "utf-8:strict"  # as where a locale is set
    argv = [sys.executable, "-c", MAIN % str(folder)]
    return subprocess.Popen(argv, env=env, cwd=folder, stdout=subprocess.PIPE, text=True)


def made(folder: Path) -> bool:
    return (folder / "out" / "made").exists()


def test_aws_takes_the_machine_back_and_outputs_and_checkpoint_are_kept_before(folder: Path) -> None:
    """Asked to end, the command exits with 0: the task has failed all the same."""
    work = "trap 'echo last >$0/step; exit 0' TERM; echo 1 >$0/made; while :; do sleep 0.1; done"
    row = {"path": str(folder / "out"), "url": "s3://b/ck", "folder": str(folder / "ck"), "version": "w-1-0"}
    checkpoints = [{**row, "frequency_s": 3600.0, "regex": "step"}]
    program = started(folder, ["sh", "-c", work, str(folder / "out")], checkpoints=checkpoints)
    wait_until(lambda: made(folder), what="the command works", timeout_s=30)
    (folder / "warning.json").write_text(json.dumps({"ends_s": time.time() + 100, "stage": 2, "why": WHY[AWS]}))
    output, _ = program.communicate(timeout=30)
    assert program.returncode == 128 + signal.SIGTERM, output
    assert "seconds (AWS takes this spot machine back): the command is stopped" in output
    assert (folder / "bucket" / "w-1-0" / "step").read_text() == "last\n"
    (mark,) = (folder / "bucket" / "clusterctl-versions").iterdir()
    assert json.loads(mark.read_text())["node_ends"] == WHY[AWS]
    assert complete_versions(folder / "ck") == ["w-1-0-0"]


def test_outputs_are_kept_beside_what_is_no_file_and_has_a_name_that_is_no_text(folder: Path) -> None:
    os.mkfifo(os.fsencode(folder / "out") + b"/pipe-\xff")
    child = started(folder, ["sh", "-c", "echo 1 >$0/made", str(folder / "out")])
    output = child.communicate(timeout=30)[0]
    assert (child.returncode, len(complete_versions(folder / "bucket"))) == (0, 1)
    assert "left out, as they are not files: pipe-\\udcff" in output


def test_a_cancelled_command_and_what_it_started_hear_of_it_and_outputs_are_kept(folder: Path) -> None:
    work = "(trap 'echo gone >$0/child; exit' TERM; echo 1 >$0/made; while :; do sleep 0.1; done) & wait; sleep 0.5"
    program = started(folder, ["bash", "-c", work, str(folder / "out")])
    wait_until(lambda: made(folder), what="the command works", timeout_s=30)
    program.send_signal(signal.SIGTERM)
    output, _ = program.communicate(timeout=30)
    assert program.returncode == 128 + signal.SIGTERM, output
    wait_until((folder / "out" / "child").exists, what="its child heard of it, too", timeout_s=30)
    assert "is kept as w-1-0" in output


def test_a_command_that_does_not_end_when_it_is_told_to_is_killed_while_there_is_time_for_its_outputs() -> None:
    argv = ["sh", "-c", "trap '' TERM; kill -TERM $PPID; while :; do sleep 0.1; done"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cli")}
    done = subprocess.run(
        [sys.executable, "-c", STUBBORN % argv], env=env, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == f"Ended(code={128 + signal.SIGKILL}, why='')\n"


def test_an_expression_that_the_nodes_python_does_not_know_fails_the_task_before_its_command(folder: Path) -> None:
    row = {"path": "", "bucket": str(folder / "bucket"), "version": "w-1-0", "regex": "(a"}
    program = started(folder, ["touch", str(folder / "out" / "made")], outputs=[row])
    output, _ = program.communicate(timeout=30)
    assert program.returncode == task.OWN_FAILURE
    assert output.startswith("clusterctl: regex '(a': not a regular expression for this node's Python: ")
    assert not made(folder)


def test_a_folder_that_is_not_on_the_node_fails_the_task_before_its_command(folder: Path) -> None:
    program = started(folder, ["touch", str(folder / "out" / "made")], mounts=["/no/such"])
    output, _ = program.communicate(timeout=30)
    assert program.returncode == task.OWN_FAILURE
    assert output == "clusterctl: volumeMounts: /no/such is not on this node\n"
    assert not made(folder)
