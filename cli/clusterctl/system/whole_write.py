"""Writing to a descriptor that may be non-blocking. Imports next to nothing: see `ssh/broker/client.py`."""

from __future__ import annotations

import io
import os
import select


def write_whole(descriptor: int, data: bytes | memoryview) -> None:
    """Writes all of `data`, and returns when that is done. Raises OSError.

    Whoever shares a terminal or a pipe with us may have made it non-blocking (O_NONBLOCK, fcntl(2)): if it has no
    room, this waits. Python's own streams drop the rest without a word (3.11, 2026-11-22).
    """
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(descriptor, select.POLLOUT)
            poll.poll()


class WholeWriter(io.RawIOBase):
    """A descriptor as a stream that takes all that it is given."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = memoryview(data)  # type: ignore[arg-type] # a buffer, as all writers are given
        write_whole(self._descriptor, chunk)
        return len(chunk)
