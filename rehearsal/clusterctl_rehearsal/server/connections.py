"""Connections that have not proved yet whose they are: few, and each for a short time, so that a flood is harmless.

A client of the region speaks as soon as it is connected. So if there are too many, those that say nothing are closed
first, and the others if the head of their request is not complete a second after they connected.
"""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

LIMIT = 128
SILENT_S = 0.25
"""How long a silent connection stays if there are too many; otherwise it has `PROOF_S`."""
SPEAKING_S = 1.0
PROOF_S = 5.0
"""In this time a connection must have sent the whole head of a request that proves whose it is."""
PROOF_BYTES = 128 * 1024
"""At most this much is read from a connection that has proved nothing."""
IDLE_S = 300.0
"""A connection that has proved whose it is may be silent for this long."""


class Connection(Protocol):
    """The method of a socket that is needed here."""

    def shutdown(self, how: int, /) -> None:
        """Ends the connection: a read from it returns the end of file."""


@dataclass(kw_only=True)
class _Unproven:
    connection: Connection
    since: float
    has_spoken: bool = False

    def end(self) -> float:
        """When the connection may be closed if there are too many."""
        return self.since + (SPEAKING_S if self.has_spoken else SILENT_S)


class UnprovenConnections:
    """The unproven connections, limited in number. One thread accepts connections; each is read by its own thread."""

    def __init__(self, *, limit: int = LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._changed = threading.Condition()
        self._unproven: dict[int, _Unproven] = {}

    def __len__(self) -> int:
        return len(self._unproven)

    def admit(self, connection: Connection) -> None:
        """Counts a new connection. If there are too many, waits for a place, or closes one that has had its time."""
        with self._changed:
            while len(self._unproven) >= self._limit:
                first = min(self._unproven.values(), key=_Unproven.end)
                left_s = first.end() - self._clock()
                if left_s > 0:
                    self._changed.wait(left_s)
                else:
                    self._close(first)
            self._unproven[id(connection)] = _Unproven(connection=connection, since=self._clock())

    def has_spoken(self, connection: Connection) -> None:
        """Notes that the connection has sent something."""
        with self._changed:
            found = self._unproven.get(id(connection))
            if found is not None:
                found.has_spoken = True

    def forget(self, connection: Connection) -> None:
        """Stops counting a connection that has proved whose it is, or is gone."""
        with self._changed:
            if self._unproven.pop(id(connection), None) is not None:
                self._changed.notify()

    def _close(self, unproven: _Unproven) -> None:
        del self._unproven[id(unproven.connection)]
        with contextlib.suppress(OSError):  # the client has closed it
            unproven.connection.shutdown(socket.SHUT_RDWR)


class GuardedReads(io.RawIOBase):
    """Reads from a connection. Until that has proved whose it is: at most PROOF_BYTES, and for PROOF_S at most."""

    def __init__(self, connection: socket.socket, unproven: UnprovenConnections) -> None:
        super().__init__()
        self._connection = connection
        self._unproven = unproven
        self._until: float | None = time.monotonic() + PROOF_S
        self._left_bytes = PROOF_BYTES

    def readable(self) -> bool:
        """True; `io.BufferedReader` asks for it."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Reads into the buffer; returns how many bytes. Raises TimeoutError beyond the limits."""
        if self._until is None:
            return self._connection.recv_into(buffer)
        left_s = self._until - time.monotonic()
        if left_s <= 0 or self._left_bytes <= 0:
            raise TimeoutError("nothing has proved whose connection it is")
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(buffer)
        self._left_bytes -= count
        self._unproven.has_spoken(self._connection)
        return count

    def prove(self) -> None:
        """Notes that the connection is the owner's: from now on it may be silent for `IDLE_S`."""
        self._until = None
        self._connection.settimeout(IDLE_S)
        self._unproven.forget(self._connection)
