"""How far copies are, added up over all of them: told by their threads, shown by one."""

from __future__ import annotations

import threading
import time

from clusterctl.views.quantities import count

BYTES_PER_MB = 1_000_000


class Progress:
    """Bytes that went over the network, out of those that will have to."""

    def __init__(self, copies: int) -> None:
        self._lock = threading.Lock()
        self._copies = copies
        self._done = 0
        self._moved_bytes = 0
        self._total_bytes = 0
        self._began_at = time.monotonic()

    def expect(self, size_bytes: int) -> None:
        """One more copy knows how much it has to move."""
        with self._lock:
            self._total_bytes += size_bytes

    def moved(self, size_bytes: int) -> None:
        """So much went over the network."""
        with self._lock:
            self._moved_bytes += size_bytes

    def done(self) -> None:
        """One copy has ended, one way or the other."""
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
