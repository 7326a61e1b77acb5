"""How a fan-out is ended from another thread than the one that waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Canceller:
    """Ends a run from another thread: every node that has no result yet gets one that says so."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Ends the run, or one that begins later."""
        with self._changing:
            self._is_cancelled = True
            stop = self._stop
        if stop is not None:
            stop()

    @property
    def is_cancelled(self) -> bool:
        """`cancel` was called."""
        return self._is_cancelled

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Has `stop` called when the run is cancelled; at once, if it already was."""
        with self._changing:
            self._stop = stop
            is_cancelled = self._is_cancelled
        if is_cancelled:
            stop()
