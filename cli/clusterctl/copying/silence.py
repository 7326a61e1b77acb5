"""Runs the ssh of an rsync that fetches from a node, and ends it if nothing has come from the node for too long.

`rsync --timeout` does not do that: when it fetches, rsync counts its own keepalives as signs of life, and waits for
ever for a node that hangs (check_timeout in its io.c; tried with 3.5.0, 2026-11-22). A healthy node sends something
twice within that time.

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
SILENCE_MESSAGE = "clusterctl: nothing has come for too long"
"""What this program writes to stderr when it ends the ssh; `rsync.py` looks for it there."""


def shell_argv(ssh: Sequence[str], *, connect_s: float, silence_s: float) -> list[str]:
    """The argv that runs `ssh` through this program. rsync counts in whole seconds, so it gets a second more."""
    module = [sys.executable, "-P", "-m", "clusterctl.copying.silence"]
    return [*module, f"{connect_s + silence_s + 1:g}", f"{silence_s + 1:g}", *ssh]


def pass_on(command: Sequence[str], *, first_s: float, silence_s: float) -> int:
    """Runs the command and returns its exit code, or 1 if it was silent for too long.

    Its stdin is rsync's own pipe; its stdout is passed on from here. `first_s`: how long its first bytes may take.
    """
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
        sys.stderr.write(f"{SILENCE_MESSAGE}\n")
        child.kill()
        return 1


def _written(chunk: bytes) -> bool:
    """Writes the chunk to stdout, which rsync has made non-blocking; returns False if rsync is gone."""
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
