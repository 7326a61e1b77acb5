"""Warnings before this machine ends: to terminals, the journal, and processes that asked for a signal."""

import contextlib
import os
import signal
from pathlib import Path
from typing import Iterable

from clusterctl_bootstrap.node.files import log
from clusterctl_bootstrap.node.received import printable

STAGES_S = (900, 300)
"""A warning is due when this much time is left; the last one is for those who have to save something."""


def stage(left_s: float) -> int:
    """How many of the warnings are due; one whose time has passed is merged with the next."""
    return sum(left_s <= stage_s for stage_s in STAGES_S)


def in_words(left_s: float) -> str:
    """`15 minutes`, `90 seconds`: a length of time as people say it."""
    if left_s >= 7200:
        return "%d hours" % round(left_s / 3600)
    if left_s > 119:
        return "%d minutes" % round(left_s / 60)
    return "%d seconds" % max(0, left_s)


def tell(root: Path, text: str) -> None:
    """Writes to every terminal, the journal and the log; if one of them cannot be written to, the others still are."""
    text = printable(text)
    line = ("\r\n\a*** %s ***\r\n" % text).encode()
    for terminal in (root / "dev/pts").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # stopped by ^S, or gone
            handle = os.open(str(terminal), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
    with contextlib.suppress(OSError):
        print("<4>%s" % text, flush=True)
    with contextlib.suppress(OSError):  # a full disk
        log(root, text)


def send(processes: Iterable[int]) -> None:
    """Sends SIGUSR1 to each process."""
    for process_id in processes:
        with contextlib.suppress(OSError):
            os.kill(process_id, signal.SIGUSR1)
