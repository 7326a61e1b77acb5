"""Runs what the language host runs (`pulumi-language-python-exec`, its argv) as Python does, but for two things.

Nearly all that a stack's program makes are pulumi_aws's types, kept until its end. Looking through them for garbage
again and again while they are loaded, and taking them apart at the end, for which the engine waits, is a quarter of
the processor time of a run of the engine (measured 2026-11-22). Run as a program.
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import sys
from pathlib import Path

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""With Python's own 700 it looks hundreds of times before the first resource is made."""


class QuickEnd:
    """Ends the process once all that was to be done at its end is done, before its modules are taken apart."""

    def __init__(self) -> None:
        self.code: int | None = None
        """None: it ends as Python does."""
        atexit.register(self._end)  # the first that is registered is the last that is called

    def _end(self) -> None:
        if self.code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


def main() -> None:
    """Ends the process with the program's exit code."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    quick = QuickEnd()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)  # as Python has it for a script
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, int):
            quick.code = end.code
        raise


if __name__ == "__main__":
    main()
