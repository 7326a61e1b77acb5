"""What tests ask of a process that stands for a login shell, or for clusterctl."""

from __future__ import annotations

import subprocess


def first_number(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
