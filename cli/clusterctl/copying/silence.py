"""Runs the shell of an rsync that fetches, and ends it when nothing has come from the node for too long.

`rsync --timeout` does not: where rsync fetches, it counts its own keepalives as signs of life, and waits for ever for a
node that stands still (check_timeout in its io.c; tried with 3.5.0, 2026-11-22). A node that is well says something
every half of that time.

    python -m clusterctl.copying.silence FIRST_S SILENCE_S COMMAND…
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Sequence

CHUNK_BYTES = 256 * 1024
TOLD = "clusterctl: nothing has come for too long"
"""What it says then, for `rsync.py` to find."""


def shell_argv(ssh: Sequence[str], *, connect_s: float, silence_s: float) -> list[str]:
    """The argv that runs `ssh` so. rsync counts in whole seconds, so a second more is left to it."""
    module = [sys.executable, "-P", "-m", "clusterctl.copying.silence"]
    return [*module, f"{connect_s + silence_s + 1:g}", f"{silence_s + 1:g}", *ssh]


def pass_on(command: Sequence[str], *, first_s: float, silence_s: float) -> int:
    """The command's exit code; what rsync writes goes to it directly, what it says goes through here."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        source, patience_s = child.stdout.fileno(), first_s
        while select.select([source], [], [], patience_s)[0]:
            chunk = os.read(source, CHUNK_BYTES)
            if not chunk:
                return child.wait()
            if not _written(chunk):
                child.terminate()
                return 1
            patience_s = silence_s
        sys.stderr.write(f"{TOLD}\n")
        child.kill()
        return 1


def _written(chunk: bytes) -> bool:
    """Whether it went to stdout, which rsync has made one that does not wait; False when rsync has gone."""
    stdout = sys.stdout.fileno()
    while chunk:
        select.select([], [stdout], [])
        try:
            with contextlib.suppress(BlockingIOError):
                chunk = chunk[os.write(stdout, chunk) :]
        except BrokenPipeError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(pass_on(sys.argv[3:], first_s=float(sys.argv[1]), silence_s=float(sys.argv[2])))
