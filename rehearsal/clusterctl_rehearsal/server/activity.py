"""How many requests are under way, and whether an idle server may end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Activity:
    """Counts requests. Once `end_if_idle` has returned True, no request is taken any more."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way = 0
        self._last = clock()
        self._is_over = False

    def begin(self) -> bool:
        """Whether a request is taken; if so, `end` must be called after it."""
        with self._lock:
            self._under_way += not self._is_over
            return not self._is_over

    def end(self) -> None:
        """Counts a request as answered."""
        with self._lock:
            self._under_way -= 1
            self._last = self._clock()

    def is_idle(self, for_s: float) -> bool:
        """Whether no request is under way, and the last one ended more than `for_s` seconds ago."""
        with self._lock:
            return self._idle(for_s)

    def end_if_idle(self, for_s: float) -> bool:
        """Whether the server was idle for so long; then it takes no request from now on."""
        with self._lock:
            self._is_over = self._is_over or self._idle(for_s)
            return self._is_over

    def _idle(self, for_s: float) -> bool:
        return self._under_way == 0 and self._clock() - self._last > for_s
