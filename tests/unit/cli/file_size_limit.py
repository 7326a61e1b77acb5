"""A limit on the size of this process's files: writing more fails, as it does on a full disk."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def room_for_files_of(most_bytes: int) -> Iterator[None]:
    """Meanwhile, a file may have this many bytes; writing beyond them raises OSError (EFBIG, setrlimit(2))."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
