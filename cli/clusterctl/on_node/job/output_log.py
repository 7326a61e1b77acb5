"""The output of an attempt on one node: lines in segments of a bounded size, the oldest of which go."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, Iterator, Optional, Tuple

from clusterctl.on_node.job.redaction import Redactor
from clusterctl.on_node.job.reserved_space import reserve_space

SEGMENT_BYTES = 16 * 1024 * 1024
SEGMENTS = 4
RESERVED_BYTES = 64 * 1024
"""How much of a segment is taken when it begins, so that a job that fills the disk can still say why it ends."""
READ_BYTES = 256 * 1024
LINE_BYTES = 64 * 1024
"""The most bytes that are read at once of what a rank says; a longer line is several in the logs."""
MARKED_BYTES = 96 * 1024
"""The most bytes of a line with a rank's number that are read at once: more than ranks' parents write in one piece."""
LAST_LINES = 20
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
        """Writes one line; on a full disk it is lost."""
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

    def begin(self) -> None:
        """Begins the first segment and takes its room, before anything can fill the disk."""
        with self._lock, contextlib.suppress(OSError):
            self._next()

    def close(self) -> None:
        """Closes the segment that is being written."""
        if self._file is not None:
            self._file.close()

    def _next(self) -> None:
        self.close()
        self._number += 1
        self._file = segment(self._folder, self._number).open("ab", buffering=0)
        reserve_space(self._file.fileno(), RESERVED_BYTES)
        self._written = 0
        old = segment(self._folder, self._number - SEGMENTS)
        if old.exists():
            old.unlink()


class LauncherOutput:
    """What launchers and ranks say, copied to the log by a thread for each stream."""

    def __init__(self, log: OutputLog, *, hidden: Tuple[bytes, ...] = ()) -> None:
        """`hidden`: secrets, which are replaced in what launchers say; ranks' parents do it for ranks."""
        self._log = log
        self._hidden = hidden
        self._copiers: list[threading.Thread] = []
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    def follow(self, stream: IO[bytes]) -> None:
        """Copies the stream to its end, in a thread."""
        copier = threading.Thread(target=self._copy, args=(stream,), daemon=True)
        copier.start()
        self._copiers.append(copier)  # not before: `drain`, in another thread, cannot wait for what has not begun

    def drain(self, timeout_s: float) -> None:
        """Waits for the end of all streams, at most for this time: what was left running may hold a stream open."""
        until = time.monotonic() + timeout_s
        for copier in self._copiers:
            copier.join(max(0.0, until - time.monotonic()))

    def last_lines(self) -> list[str]:
        """The last lines of the launchers themselves."""
        return list(self._last)

    def _copy(self, stream: IO[bytes]) -> None:
        """Copies line by line. Lines of ranks come behind their numbers; all others are the launcher's own."""
        rank, redactor, is_new = "", Redactor(()), True
        for read, is_last in line_pieces(stream, MARKED_BYTES):
            piece = read
            if is_new:
                number, tab, text = read.partition(b"\t")
                is_of_rank = bool(tab) and number.isdigit()
                rank, piece = (number.decode(), text) if is_of_rank else ("-", read)
                redactor = Redactor(() if is_of_rank else self._hidden)
            is_new = is_last
            shown = redactor.feed(piece, is_last=is_last)
            if shown is None:
                continue
            if rank == "-":
                self._last.append(shown.decode("utf-8", "replace"))
            self._log.write(rank, shown)


def line_pieces(stream: IO[bytes], most_bytes: int) -> Iterator[Tuple[bytes, bool]]:
    """Each line without its end, a longer one in pieces of `most_bytes`; with each, whether the line ends with it."""
    is_new = True
    while True:
        read = stream.readline(most_bytes)
        is_last = read.endswith(b"\n") or not read
        if read or not is_new:
            yield read.rstrip(b"\n"), is_last
        if not read:
            return
        is_new = is_last


def segment(folder: Path, number: int) -> Path:
    """The file of a segment; the first segment is number 1."""
    return folder / ("output.%06d" % number)


def segments(folder: Path) -> list[int]:
    """The numbers of the segments that are there."""
    return sorted(int(path.name[-6:]) for path in folder.glob("output.??????") if path.name[-6:].isdigit())


def read_from(folder: Path, place: Place) -> Iterator[tuple[Place, str]]:
    """Whole lines from `place` on as far as they are written, each with the place behind it."""
    number, offset = place
    while True:
        numbers = segments(folder)
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
