"""A lock on an open file, which the kernel releases when its holder dies; some file systems have no locks.

On NFS flock(2) locks the whole file at the server (flock(2), "NFS details", read 2026-11-26): an exclusive lock needs a
file that is open for writing, and fails with ENOLCK without a lock service. Some other file systems refuse it, too.
"""

from __future__ import annotations

import errno
import fcntl
import time
from collections.abc import Callable

NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
POLL_S = 0.05
Flock = Callable[[int, int], None]


def try_lock(descriptor: int, *, flock: Flock = fcntl.flock) -> bool:
    """Takes the lock: True when it is held, False where the file system has no locks.

    Raises BlockingIOError while somebody else holds it.
    """
    try:
        flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as e:
        if e.errno in NO_LOCKS:
            return False
        raise
    return True


def lock_within(
    descriptor: int,
    within_s: float,
    *,
    flock: Flock = fcntl.flock,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """As `try_lock`, but waits until the holder has released it. Raises TimeoutError where that takes longer than
    `within_s`.
    """
    until = clock() + within_s
    while True:
        try:
            return try_lock(descriptor, flock=flock)
        except BlockingIOError as e:
            if clock() > until:
                raise TimeoutError(f"another process has held it for more than {within_s:g} s") from e
        sleep(POLL_S)
