"""The memory of the process that keeps connections is nobody else's to read, not even by the same user."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PR_CAPBSET_DROP, CAP_SYS_PTRACE = 24, 19  # linux/prctl.h, linux/capability.h

LOOK = """
import os, sys
from clusterctl.ssh.broker.process import refuse_tracing
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    if sys.argv[1] == "refused":
        refuse_tracing()
    os.write(writer, b"x")
    os.read(os.pipe()[0], 1)
os.read(reader, 1)
try:
    open(f"/proc/{child}/mem", "rb").close()
    print("open")
except PermissionError:
    print("refused")
finally:
    os.kill(child, 9)
    os.waitpid(child, 0)
"""
"""A parent looks at its child: that is allowed wherever tracing is (Yama, ptrace_scope 1)."""


def without_the_right_to_trace_all() -> None:
    """Takes from the program that is run next root's right to trace every process."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0)


@pytest.mark.parametrize("expected", ["open", "refused"])
def test_the_same_user_cannot_read_its_memory(expected: str) -> None:
    looked = subprocess.run(
        [sys.executable, "-c", LOOK, expected],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=without_the_right_to_trace_all,
    )
    assert looked.stdout.strip() == expected
