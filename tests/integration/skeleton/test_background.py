"""What `scripts/test` fetches beside the checks: waited for, shown when it fails, ended with the script."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.rehearsed import ROOT, wait_until

BEGINNING = f"set -euo pipefail\n. {ROOT}/scripts/background\n"


@contextmanager
def begun(folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """A bash script that has the functions, with its temporary files in the folder."""
    with subprocess.Popen(
        ["bash", "-c", BEGINNING + script],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        yield child


def run_script(folder: Path, script: str) -> tuple[int, str]:
    """The exit code and the output of a script that ends by itself."""
    with begun(folder, script) as child:
        text, _ = child.communicate(timeout=30)
    return child.returncode, text


def test_commands_run_beside_the_script_and_what_they_say_is_not_shown(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"in_background cat {fifo}\nin_background echo fetched\necho beside > {fifo}\nbackground_ended\necho after"
    assert run_script(tmp_path, script) == (0, "after\n")
    assert list(tmp_path.iterdir()) == [fifo]


def test_of_those_that_fail_the_script_shows_all_that_they_said_and_ends(tmp_path: Path) -> None:
    failing = (
        "in_background sh -c 'echo no index; echo in reach >&2; exit 3'\nin_background false\nin_background true\n"
    )
    code, text = run_script(tmp_path, f"{failing}background_ended\necho after")
    assert code == 1
    assert text == (
        "sh -c echo no index; echo in reach >&2; exit 3 failed; it said:\n    no index\n    in reach\n"
        "false failed; it said:\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_they_end_with_all_that_they_started_when_the_script_is_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    fetch = f"sleep 300 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    with begun(tmp_path, f"in_background sh -c '{fetch}'\nbackground_ended") as child:
        wait_until(pids.exists, what="the fetch has begun", timeout_s=30)
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=30)
    ended = [int(pid) for pid in pids.read_text().split()]
    wait_until(lambda: all(map(is_gone, ended)), what="both have ended", timeout_s=30)
    assert list(tmp_path.iterdir()) == [pids]


def is_gone(pid: int) -> bool:
    """Whether the process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
