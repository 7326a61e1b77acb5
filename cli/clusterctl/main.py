"""The program `clusterctl`: a command that another process can do at once is left to it, all else is done here."""

from __future__ import annotations

import gc
import importlib
import os
import sys

from clusterctl.ssh.warm.client import done_warm
from clusterctl.standard_streams import hold_standard_streams

GARBAGE_AFTER = 50_000
"""Objects made until they are looked through for garbage: Python's own 700 looks 40 times in a start, 4 ms."""


def main() -> None:
    """Ends the process with the command's exit code.

    Without the interpreter's own end: taking its modules apart costs 14 ms of a start's 60, and a thread that
    still waits for a node that will never answer must not hold the person up. Nothing here relies on `atexit`.
    """
    gc.set_threshold(GARBAGE_AFTER)
    hold_standard_streams()
    code = done_warm(sys.argv[1:], os.environ)
    if code is None:
        # Loaded on use: what the program needs is 40 ms of a start, and a command that was done elsewhere needs none.
        code = importlib.import_module("clusterctl.program").run_as_process(sys.argv[1:])
    os._exit(code)


if __name__ == "__main__":
    main()
