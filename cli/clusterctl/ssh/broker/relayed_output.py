"""Sends the output of a command that this process carries out to where the command was typed."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from typing import IO

from clusterctl.ssh.broker.frames import frame

MOST_BYTES = 256 * 1024
"""The most that is held back: after that the nodes wait for whoever reads it."""
FRAME_BYTES = 1024 * 1024


class RelayedOutput:
    """Output on its way to the command: gathered while more is there, sent when it is quiet."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._held: list[tuple[bytes, bytearray]] = []
        self._held_bytes = 0
        self._changing = threading.Lock()

    def stream(self, kind: bytes) -> IO[bytes]:
        """A stream; what is written to it comes out of the command's stdout or stderr, whichever `kind` says."""
        return io.BufferedWriter(_Frames(kind, self._hold))

    def send(self) -> None:
        """Sends what is held. Raises BrokenPipeError when the command has gone."""
        with self._changing:
            held, self._held, self._held_bytes = self._held, [], 0
        if held:
            self._connection.sendall(b"".join(frame(kind, piece) for kind, data in held for piece in _pieces(data)))

    def _hold(self, kind: bytes, data: bytes) -> None:
        with self._changing:
            if self._held and self._held[-1][0] == kind:
                self._held[-1][1].extend(data)
            else:
                self._held.append((kind, bytearray(data)))
            self._held_bytes += len(data)
            is_much = self._held_bytes >= MOST_BYTES
        if is_much:
            self.send()


def _pieces(data: bytearray) -> Iterator[bytes]:
    """The data in pieces of at most FRAME_BYTES: gathered output comes all at once, and frames are bounded."""
    return (bytes(data[start : start + FRAME_BYTES]) for start in range(0, len(data), FRAME_BYTES))


class _Frames(io.RawIOBase):
    """A stream that gives what is written to it to `hold`, as output of one kind."""

    def __init__(self, kind: bytes, hold: Callable[[bytes, bytes], None]) -> None:
        super().__init__()
        self._kind = kind
        self._hold = hold

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(memoryview(data))  # type: ignore[arg-type]
        self._hold(self._kind, chunk)
        return len(chunk)
