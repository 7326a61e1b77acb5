"""What a command reads: the same bytes for every node, each node at its own pace."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable
from typing import IO, Protocol

from clusterctl_infra.errors import ClusterctlError

from clusterctl.ssh.fanout.scratch import named_folder, temporary_file

CHUNK_BYTES = 64 * 1024
AHEAD_BYTES = 16 * 1024 * 1024
"""How far the reading runs ahead of the fastest reader."""


class Input(Protocol):
    """What a command reads."""

    def read(self, offset: int) -> bytes | None:
        """What follows at `offset`; None when it has not come yet; b"" at the end."""

    def taken(self, offset: int) -> None:
        """Says that the node has everything before `offset`."""


class BytesInput:
    """Bytes that are all there."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, offset: int) -> bytes:
        """What follows at `offset`; b"" at the end."""
        return self._content[offset : offset + CHUNK_BYTES]

    def taken(self, offset: int) -> None:
        """Does nothing: the bytes stay where they are."""


class CommandInput:
    """Bytes read once from `source` by a thread, kept in an unnamed file, and read by many.

    For one reader the file is a ring of AHEAD_BYTES; for several it grows with the input, since a node that reads
    nothing must not hold up the others.
    """

    def __init__(self, source: IO[bytes], *, readers: int, on_more: Callable[[], None]) -> None:
        self._source = source
        self._on_more = on_more
        self._ring_bytes = AHEAD_BYTES if readers == 1 else 0
        self._file = temporary_file()  # lives as long as the input
        self._changed = threading.Condition()
        self._written = 0
        self._read = 0
        self._is_at_end = False
        self._has_ended = False
        self._lost: OSError | ClusterctlError | None = None
        self._end_reader, self._end_writer = os.pipe()

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._pump, daemon=True, name="ssh stdin").start()

    def stop(self) -> None:
        """Reads and keeps no more: what is typed at a terminal from now on is for other programs."""
        with self._changed:
            self._has_ended = True
            self._file.close()
            self._changed.notify()
        os.close(self._end_writer)

    def read(self, offset: int) -> bytes | None:
        """What follows at `offset`; None when it has not come yet, and after `stop`; b"" at the end.

        Raises OSError where the input could not be kept, and ClusterctlError where it could not be read: ending the
        command's input instead would look like the end of what the person gave.
        """
        with self._changed:
            if self._lost is not None:
                raise self._lost
            if self._has_ended:
                return None
            left = self._written - offset
            if left == 0:
                return b"" if self._is_at_end else None
            position = offset % self._ring_bytes if self._ring_bytes else offset
            most = self._ring_bytes - position if self._ring_bytes else CHUNK_BYTES
            return os.pread(self._file.fileno(), min(left, most, CHUNK_BYTES), position)

    def taken(self, offset: int) -> None:
        """Says that a reader needs nothing before `offset` any more."""
        with self._changed:
            self._read = max(self._read, offset)
            self._changed.notify()

    def _pump(self) -> None:
        while chunk := self._next():
            with self._changed:
                self._changed.wait_for(self._has_room)
                if self._has_ended:
                    break
                try:
                    self._store(chunk)
                except OSError as e:  # a full disk
                    self._lost = e
                    break
                self._written += len(chunk)
            self._on_more()
        os.close(self._end_reader)
        with self._changed:
            self._is_at_end = True
        self._on_more()

    def _has_room(self) -> bool:
        return self._has_ended or self._written - self._read <= AHEAD_BYTES - CHUNK_BYTES

    def _next(self) -> bytes:
        """What comes next; empty at the end, when nobody wants it any more, and where it is lost."""
        poll = select.poll()
        poll.register(self._end_reader, select.POLLIN)
        try:
            poll.register(self._source, select.POLLIN)
            while True:
                poll.poll()
                with contextlib.suppress(BlockingIOError):  # another process that shares the input was quicker
                    return b"" if self._has_ended else os.read(self._source.fileno(), CHUNK_BYTES)
        except ValueError:  # closed meanwhile
            return b""
        except OSError as e:
            if not self._source.isatty():  # a terminal that somebody hung up says so by an error: that is its end
                self._lost = ClusterctlError(f"stdin cannot be read: {(e.strerror or str(e)).lower()}")
            return b""

    def _store(self, chunk: bytes) -> None:
        position = self._written % self._ring_bytes if self._ring_bytes else self._written
        fits = self._ring_bytes - position if self._ring_bytes else len(chunk)
        with named_folder():
            self._write(chunk[:fits], position)
            self._write(chunk[fits:], 0)

    def _write(self, data: bytes, position: int) -> None:
        """Writes all of the data: a disk that gets full takes only a part at first."""
        while data:
            taken = os.pwrite(self._file.fileno(), data, position)
            data, position = data[taken:], position + taken
