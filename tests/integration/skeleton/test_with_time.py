"""`scripts/with-time`: a command that takes long is reported, and runs as it does without the script."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

WITH_TIME = Path(__file__).resolve().parents[3] / "scripts" / "with-time"


def start(interval_s: str, *command: str) -> subprocess.Popen[str]:
    argv = [str(WITH_TIME), interval_s, "waiting", *command]
    return subprocess.Popen(argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_command_that_takes_long_is_heard_of_until_it_ends() -> None:
    process = start("0.1", "sh", "-c", "read -r answer && echo $answer && exit 7")
    assert process.stderr is not None
    for _ in range(2):
        assert re.fullmatch(r"  still waiting, \d+ s\n", process.stderr.readline())
    output, _ = process.communicate("done\n", timeout=20)
    assert (output, process.returncode) == ("done\n", 7)


def test_a_quick_one_keeps_nobody_waiting_and_says_nothing() -> None:
    output = start("600", "true").communicate(timeout=20)
    assert output == ("", "")
