"""Who is told that this machine ends: terminals, the journal, and processes that asked for a signal.

A process asks by an empty file in /run/clusterctl/warn whose name is its process id.
"""

import contextlib
import os
import signal
from pathlib import Path
from typing import Iterable, Iterator

from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.files import log
from clusterctl_bootstrap.node.outside import Outside

STAGES_S = (900, 300)
"""Told when so much is left, the last one for those who have to save something."""
REGISTER = "run/clusterctl/warn"
ROOM = "size=1m,nr_inodes=4096,mode=1777,nosuid,nodev,noexec"
"""The folder is a file system of its own: what everybody may write to must not fill /run, where the guard writes."""


def stage(left_s: float) -> int:
    """How many of the warnings are due; what is past already counts as one with what comes after it."""
    return sum(left_s <= stage_s for stage_s in STAGES_S)


def in_words(left_s: float) -> str:
    """`15 minutes`, `90 seconds`: what a person does something with."""
    if left_s >= 7200:
        return "%d hours" % round(left_s / 3600)
    if left_s > 119:
        return "%d minutes" % round(left_s / 60)
    return "%d seconds" % max(0, left_s)


def tell(root: Path, text: str) -> None:
    """To every terminal, to the journal and to the log; none of them may be in the way of the others."""
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


def open_register(root: Path, outside: Outside) -> None:
    """Makes the folder in which everybody may ask, each for processes of his own."""
    folder = root / REGISTER
    folder.mkdir(parents=True, exist_ok=True)
    if guard.applies(root) and not os.path.ismount(str(folder)):
        outside.run(["mount", "-t", "tmpfs", "-o", ROOM, "clusterctl-warn", str(folder)])
    folder.chmod(0o1777)


def asking(root: Path) -> Iterator[int]:
    """The processes that asked and live; entries of others are removed.

    An entry counts for processes of its owner alone.
    """
    for entry in sorted((root / REGISTER).glob("*")):
        with contextlib.suppress(OSError):
            process = root / "proc" / entry.name
            is_process = entry.name.isdigit() and process.is_dir()
            if is_process and may_ask(entry.lstat().st_uid, process.stat().st_uid):
                yield int(entry.name)
            else:
                entry.unlink()


def may_ask(owner: int, of_process: int) -> bool:
    """Whether an entry of that user counts for a process of the other: a signal ends whoever did not expect it."""
    return owner in (0, of_process)


def send(processes: Iterable[int]) -> None:
    """SIGUSR1 to each."""
    for process_id in processes:
        with contextlib.suppress(OSError):
            os.kill(process_id, signal.SIGUSR1)
