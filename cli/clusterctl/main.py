"""The program `clusterctl`: runs a command here, unless a process that has connections open can run it at once."""

from __future__ import annotations

import gc
import importlib
import os
import sys

from clusterctl.ssh.broker.client import done_warm

GARBAGE_AFTER = 50_000
"""After so many new objects Python looks for garbage: with its own 700 it looks 40 times in a start, for 4 ms."""


def main() -> None:
    """Ends the process with the command's exit code.

    The interpreter's own shutdown is skipped: taking its modules apart costs 14 ms of a start's 60, and a thread that
    still waits for a node that will never answer must not hold the person up. Nothing here relies on `atexit`.
    """
    gc.set_threshold(GARBAGE_AFTER)
    hold_standard_streams()
    code = done_warm(sys.argv[1:], os.environ)
    if code is None:
        # Loaded on use: a command that another process carried out does not need it.
        code = importlib.import_module("clusterctl.program").run_as_process(sys.argv[1:])
    os._exit(code)


def hold_standard_streams() -> None:
    """Opens something in the place of a closed stdin, stdout or stderr.

    Otherwise the next file or connection would get the number, and be taken for the stream. As in ssh, a closed stdin
    is empty and a closed stderr discards everything; as in coreutils, a closed stdout refuses what is written: nobody
    has got the result, and the exit code says so.
    """
    # The lowest number that is free is given: stdin's before stdout's.
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


if __name__ == "__main__":
    main()
