"""The three streams that a program is started with, also where it is started without some. Imports next to nothing."""

from __future__ import annotations

import os
import sys


def hold_standard_streams() -> None:
    """Gives a closed stdin, stdout or stderr its number back.

    Else the next file or connection would get the number, and be taken for the stream. A closed stdin is at its end
    and a closed stderr takes everything, as ssh has it; a closed stdout refuses what is written, as in coreutils: what
    was asked for has not got to anybody, and the exit code says so.
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
