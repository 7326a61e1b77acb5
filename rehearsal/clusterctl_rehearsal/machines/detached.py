"""Starting a process that outlives its starter and reports once whether it came up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterctl_rehearsal.machines.folders import tail

STARTED = "started"
_START_TIMEOUT_S = 30.0


def start_detached(module: str, arguments: Sequence[str], log: Path) -> str | None:
    """Runs one of our modules as a separate process; returns None once it reports that it has started, else the reason
    why not.

    The process gets its own session, none of our descriptors, and only clusterctl's settings from our environment.
    `-S` and one search path are enough, as such modules need only the standard library and this package.
    """
    source_root = Path(__file__).resolve().parents[2]
    with log.open("wb") as log_file:
        done = subprocess.run(
            [sys.executable, "-P", "-S", "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log_file,
            cwd="/",
            env={**_own_settings(), "PATH": search_path(), "PYTHONPATH": str(source_root)},
            start_new_session=True,
            timeout=_START_TIMEOUT_S,
        )
    answer = done.stdout.decode(errors="replace").strip()
    if answer == STARTED:
        return None
    return answer or tail(log, 1) or "its process ended"


def search_path() -> str:
    """The caller's PATH with the folders that hold ip, nft and sshd, which a plain user's lacks."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"


def become_independent() -> None:
    """Fork and leave the caller: it waits for the parent, which ends here; the child goes on as nobody's child."""
    if os.fork() != 0:
        os._exit(0)
    os.umask(0o022)


def tell(text: str) -> None:
    """Answer the caller of `start_detached`, and then close the pipe, as the caller reads until its end."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the caller was killed meanwhile; what it started goes on
        pass
    os.dup2(2, 1)


def _own_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("CLUSTERCTL_")}
