"""The output of an attempt on one node: lines in segments of a bounded size, the oldest of which go."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import IO, Iterator, Optional, Tuple

SEGMENT_BYTES = 16 * 1024 * 1024
SEGMENTS = 4
READ_BYTES = 256 * 1024
Place = Tuple[int, int]
"""Segment and offset."""


class OutputLog:
    """Writes `TIME RANK TEXT` lines; RANK is - for the launcher itself. Safe to use from several threads."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._number = 0
        self._written = 0
        self._file: Optional[IO[bytes]] = None
        self._lock = threading.Lock()

    def write(self, rank: str, text: bytes) -> None:
        """One line; a disk that takes no more loses it."""
        line = ("%.3f %s " % (time.time(), rank)).encode() + text + b"\n"
        with self._lock:
            try:
                if self._file is None or self._written + len(line) > self._segment_bytes:
                    self._next()
                if self._file is not None:
                    self._file.write(line)
                    self._written += len(line)
            except OSError:
                pass  # the training goes on without its log

    def close(self) -> None:
        """Lets go of it."""
        if self._file is not None:
            self._file.close()

    def _next(self) -> None:
        self.close()
        self._number += 1
        self._file = segment(self._folder, self._number).open("ab", buffering=0)
        self._written = 0
        old = segment(self._folder, self._number - SEGMENTS)
        if old.exists():
            old.unlink()


def segment(folder: Path, number: int) -> Path:
    """The file of a segment, the first one is 1."""
    return folder / ("output.%06d" % number)


def read_from(folder: Path, place: Place) -> Iterator[tuple[Place, str]]:
    """Whole lines from `place` on as far as they are written, each with the place behind it."""
    number, offset = place
    while True:
        numbers = sorted(int(path.name[-6:]) for path in folder.glob("output.??????"))
        later = [found for found in numbers if found > number]
        if number in numbers:
            for after, line in _lines(segment(folder, number), offset):
                yield (number, after), line
        if not later:
            return
        number, offset = later[0], 0


def _lines(path: Path, offset: int) -> Iterator[tuple[int, str]]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            while True:
                chunk = file.read(READ_BYTES)
                whole, newline, _ = chunk.rpartition(b"\n")
                if not newline:
                    return
                file.seek(offset + len(whole) + 1)
                for line in whole.split(b"\n"):
                    offset += len(line) + 1
                    yield offset, line.decode("utf-8", "replace")
    except FileNotFoundError:
        return
