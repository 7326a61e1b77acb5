"""The output of many nodes on one screen: each line behind its node's name, whole lines only."""

from __future__ import annotations

from collections.abc import Callable

LONGEST_HELD_BYTES = 64 * 1024
"""A line longer than this is shown in pieces rather than held."""


class LinePrefixer:
    """Turns one stream's chunks into prefixed lines for `sink`; used by one thread at a time."""

    def __init__(self, name: str, sink: Callable[[bytes], None]) -> None:
        self._prefix = f"[{name}] ".encode()
        self._sink = sink
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Passes on the lines that `chunk` completes, in one call."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST_HELD_BYTES:
            whole.append(self._rest)
            self._rest = b""
        if whole:
            self._sink(b"".join(self._prefix + line + b"\n" for line in whole))

    def finish(self) -> None:
        """Passes on a last line that has no newline."""
        if self._rest:
            self._sink(self._prefix + self._rest + b"\n")
            self._rest = b""
