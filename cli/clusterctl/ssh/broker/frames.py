"""What a command and the process that keeps connections send each other: frames of a kind, a length and bytes.

The command begins with WITH_STDIN, which carries the descriptor of its stdin and, where that is a terminal, also that
of a pipe. REQUEST follows, and ACCEPTED or REFUSED is the answer; only after GO does anything run, so that a command
which has given up waiting is not run twice. Then its output comes back, and EXIT. To end what runs, the command
closes its side. Imports next to nothing, like `client`.
"""

from __future__ import annotations

import socket
import struct
import time

WITH_STDIN = b"\0"
"""One byte, not a frame."""
REQUEST, GO = b"q", b"g"
ACCEPTED, REFUSED = b"a", b"x"
"""ACCEPTED carries the exit code to use if the process is lost while the command runs, and 1 where the command reads
its stdin: then what is typed has to be sent."""
STDOUT, STDERR, EXIT = b"o", b"e", b"r"
MOST_BYTES = 64 * 1024 * 1024

_HEAD = struct.Struct(">cI")
_CHUNK_BYTES = 256 * 1024


def frame(kind: bytes, data: bytes = b"") -> bytes:
    """The bytes of one frame."""
    return _HEAD.pack(kind, len(data)) + data


class Frames:
    """The frames that come on a connection; interrupting the wait for a frame loses nothing of it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._held = bytearray()

    def next(self, within_s: float | None = None) -> tuple[bytes, bytes] | None:
        """Kind and bytes of the next frame; None when the other side has gone or is late, or the frame is too long.

        If `within_s` is given, the whole frame has to arrive within it.
        """
        held = self._held
        until_s = None if within_s is None else time.monotonic() + within_s
        while True:
            if len(held) >= _HEAD.size:
                kind, length = _HEAD.unpack_from(held)
                end = _HEAD.size + length
                if len(held) >= end:
                    data = bytes(held[_HEAD.size : end])
                    del held[:end]
                    return kind, data
                if length > MOST_BYTES:
                    return None
            try:
                if until_s is not None:
                    self._connection.settimeout(max(0.001, until_s - time.monotonic()))
                chunk = self._connection.recv(_CHUNK_BYTES)
            except OSError:
                return None
            if not chunk:
                return None
            held += chunk
