"""What the event loops hand to the thread that prints: in order, and bounded in size."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.ssh.results import NodeResult

MOST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """Output of one node."""

    slot: int
    is_stderr: bool
    data: bytes


Event = Chunk | NodeResult | BaseException


class Outbox:
    """A queue between threads whose writers ask for room first."""

    def __init__(self, on_room: Callable[[], None]) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._on_room = on_room
        self._put_bytes = 0
        self._got_bytes = 0
        self._was_full = False
        self._putting = threading.Lock()

    def has_room(self) -> bool:
        """Whether more output may be put; if not, `on_room` will be called."""
        if self._put_bytes - self._got_bytes < MOST_BYTES:
            return True
        self._was_full = True
        # The reader may have taken it all between the two lines above.
        return self._put_bytes - self._got_bytes < MOST_BYTES

    def put(self, event: Event) -> None:
        """Takes an event, with or without room: one chunk more does no harm."""
        if isinstance(event, Chunk):
            with self._putting:
                self._put_bytes += len(event.data)
        self._events.put(event)

    def get(self, timeout_s: float | None = None) -> Event:
        """The next event. Raises queue.Empty when none has come in time."""
        event = self._events.get(timeout=timeout_s)
        if isinstance(event, Chunk):
            self._got_bytes += len(event.data)
            if self._was_full and self._put_bytes - self._got_bytes <= MOST_BYTES // 2:
                self._was_full = False
                self._on_room()
        return event
