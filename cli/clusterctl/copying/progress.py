"""The progress of all copies of a command together: several threads report it, one shows it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from clusterctl.text.quantities import count

BYTES_PER_MB = 1_000_000


class Progress:
    """Counts the bytes that were moved, those that have to be, and the copies that have ended."""

    def __init__(self, copies: int) -> None:
        self._lock = threading.Lock()
        self._copies = copies
        self._done = 0
        self._moved_bytes = 0
        self._total_bytes = 0
        self._began_at = time.monotonic()

    @contextlib.contextmanager
    def of_one(self, left_bytes: int) -> Iterator[Callable[[int], None]]:
        """Adds one copy that has `left_bytes` to move; gives the function to call with each number of bytes moved.

        If the block raises, the bytes that did not come are taken off the total.
        """
        came_bytes = 0

        def moved(size_bytes: int) -> None:
            nonlocal came_bytes
            came_bytes += size_bytes
            self._count(moved_bytes=size_bytes)

        self._count(total_bytes=left_bytes)
        try:
            yield moved
        except BaseException:
            self._count(total_bytes=came_bytes - left_bytes)
            raise

    def done(self) -> None:
        """Notes that one copy has ended, well or not."""
        with self._lock:
            self._done += 1

    def text(self) -> str:
        """`1 of 4 files · 120 of 480 MB · 95 MB/s`."""
        with self._lock:
            rate = self._moved_bytes / max(0.001, time.monotonic() - self._began_at)
            return (
                f"{self._done} of {count(self._copies, 'file')} · {self._moved_bytes / BYTES_PER_MB:.0f} of "
                f"{self._total_bytes / BYTES_PER_MB:.0f} MB · {rate / BYTES_PER_MB:.0f} MB/s"
            )

    def _count(self, *, moved_bytes: int = 0, total_bytes: int = 0) -> None:
        with self._lock:
            self._moved_bytes += moved_bytes
            self._total_bytes += total_bytes
