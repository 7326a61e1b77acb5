"""Files that are whole or not there, however this process ends."""

import contextlib
import fcntl
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Iterator


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Makes `path` hold `text`; readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not by tempfile, which would take 3 ms of processor time to load in each start of the agent.
    temporary = str(path.parent / (".clusterctl-" + os.urandom(8).hex()))
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, str(path))
    except BaseException:
        os.unlink(temporary)
        raise


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """A lock that lets only one of the agent's processes write at a time; it is never held during a wait.

    Only root may open the file: a user who could merely read it could hold the lock, and stop root's services.
    """
    folder = root / "var/lib/clusterctl"
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(str(folder / "lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as file:
        os.fchmod(handle, 0o600)  # an older agent in the image made it for all
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def log(root: Path, text: str) -> None:
    """One line with the time in /var/log/clusterctl.log."""
    path = root / "var/log/clusterctl.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("%s %s\n" % (now(), text))


def now() -> str:
    """The time, ISO 8601 in UTC to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
