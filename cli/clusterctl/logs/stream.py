"""Turns what a node's reader prints into lines with times by this computer's clock.

It remembers where each source was, so that a new connection can go on there.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.strict_json import Fields, NotAsExpected, parsed, shortened

from clusterctl.logs.line_time import SourceClock

COLUMNS = ("source", "place", "given_s", "is_exact", "text", "file", "is_shared")
MOST_ROW_BYTES = 16 * 1024 * 1024
MOST_PLACE = 64 * 1024
MOST_SOURCES = 100
MOST_FILES = 10_000
"""How many files one source may have, over the whole time in which it is followed."""
MOST_PATH = 4096
MOST_TROUBLES = 100
LATEST_S = 9_000_000_000.0
"""The year 2255: a reader that gives a later time is wrong, and a line's later time is shown as this."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of one node."""

    slot: int
    name: str
    source: str
    at_s: float
    """Unix time by this computer's clock."""
    text: str
    file: str = ""
    """The path of its file on the node; empty for a line of the journal."""
    is_shared: bool = False
    """Whether its file is on storage that other nodes have, too: then it is shown once for all of them."""


def shown_lines(text: str) -> list[str]:
    """The lines of a text, each as a terminal shows it in the end: of a progress bar only what was drawn last."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.removesuffix("\n").split("\n")]


class SharedFiles:
    """How far files that several nodes share have been shown; used by the nodes' threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown_to: dict[tuple[str, str], int] = {}

    def is_new(self, path: str, place: str, *, before: str) -> bool:
        """Whether no node has given this line yet; if so, notes it.

        `place`: `inode:offset` of the line; `before`: the place of the same node's previous line.
        """
        (inode, end), (last_inode, last_end) = _inode_and_offset(place), _inode_and_offset(before)
        with self._lock:
            if last_inode == inode and end < last_end:
                self._shown_to.pop((path, inode), None)  # the file was truncated and is written anew
            if end <= self._shown_to.get((path, inode), -1):
                return False
            self._shown_to[path, inode] = end
            return True


def _inode_and_offset(place: str) -> tuple[str, int]:
    """The parts of a place, `inode:offset`; 0 for an offset that no file has, which a broken node may send."""
    inode, _, offset = place.partition(":")
    return inode, int(offset) if re.fullmatch(r"[0-9]{1,18}", offset) else 0


class NodeStream:
    """Reads one node's rows, over one connection after another; used by one thread at a time."""

    def __init__(
        self,
        node: InventoryNode,
        *,
        on_line: Callable[[LogLine], None],
        on_trouble: Callable[[str], None],
        now: Callable[[], float] = time.time,
        shared: SharedFiles | None = None,
    ) -> None:
        """`shared`: one for all nodes of a command."""
        self._node = node
        self._on_line = on_line
        self._on_trouble = on_trouble
        self._now = now
        self._shared = SharedFiles() if shared is None else shared
        self._file_places: dict[str, dict[str, str]] = {}
        self._rest = b""
        self._ahead_s = 0.0
        self._clocks: dict[str, SourceClock] = {}
        self._reported: set[str] = set()
        self.missing: set[str] = set()
        """Sources that do not exist on the node."""
        self.over: set[str] = set()
        """Sources that the node does not have and never will."""
        self._places: dict[str, str] = {}

    @property
    def places(self) -> dict[str, str]:
        """Source → where its last complete line ended; for a source of files, JSON of path → place."""
        return {**self._places, **{source: json.dumps(places) for source, places in self._file_places.items()}}

    def begin(self) -> None:
        """Notes a new connection: an incomplete row of the old one is dropped, since it will be sent again."""
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Passes on the lines that `chunk` completes."""
        *rows, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[: MOST_ROW_BYTES + 1]  # a longer row cannot be read anyway, so it is not kept whole
        for row in rows:
            if not row.startswith((b"{", b"[")):
                continue  # a login's greeting
            try:
                self._take(parsed(row, most_bytes=MOST_ROW_BYTES))
            except NotAsExpected as e:
                self._tell(f"a line of its log reader cannot be read: {e}")

    def _take(self, row: object) -> None:
        if isinstance(row, list):
            if len(row) != len(COLUMNS):
                raise NotAsExpected(f"a row of {len(row)}, not of {', '.join(COLUMNS)}")
            self._take_line(Fields(dict(zip(COLUMNS, row, strict=True))))
            return
        fields = Fields.of(row)
        if fields.has("now"):
            self._ahead_s = fields.number("now", low=0, high=LATEST_S) - self._now()
        elif fields.has("trouble"):
            self._take_trouble(fields)

    def _take_line(self, row: Fields) -> None:
        source, place = row.text("source", most=200), row.text("place", most=MOST_PLACE)
        text = row.row["text"]  # may have a NUL: a log can contain anything
        if not isinstance(text, str):
            raise NotAsExpected(f"text is {shortened(text)}, no text")
        given_s = row.number("given_s", low=0, high=LATEST_S)
        file, is_shared = row.text("file", most=MOST_PATH), row.flag("is_shared")
        if not self._is_at_new_place(source, place, file, is_shared=is_shared):
            return
        if source not in self._clocks and len(self._clocks) >= MOST_SOURCES:
            raise NotAsExpected(f"more than {MOST_SOURCES} sources")
        clock = self._clocks.setdefault(source, SourceClock())
        for line in shown_lines(text):
            at_s = clock.at_s(line, given_s, is_exact=row.flag("is_exact")) - self._ahead_s
            at_s = min(max(0.0, at_s), LATEST_S)
            self._on_line(
                LogLine(
                    slot=self._node.slot,
                    name=self._node.name,
                    source=source,
                    at_s=at_s,
                    text=line,
                    file=file,
                    is_shared=is_shared,
                )
            )

    def _is_at_new_place(self, source: str, place: str, file: str, *, is_shared: bool) -> bool:
        """Notes how far the node has read, and returns whether to show the line: one of a shared file is shown once."""
        if not file:
            self._places[source] = place
            return True
        places = self._file_places.setdefault(source, {})
        if file not in places and len(places) >= MOST_FILES:
            raise NotAsExpected(f"more than {MOST_FILES} files")
        before, places[file] = places.get(file, ""), place
        if not is_shared:
            return True
        self._tell(f"{file} is on shared storage: each of its lines is shown once, as [shared]")
        return self._shared.is_new(file, place, before=before)

    def _take_trouble(self, row: Fields) -> None:
        source, trouble = row.text("source"), row.text("trouble")
        if row.flag("missing"):
            self.missing.add(source)
        if row.flag("over"):
            self.over.add(source)
        self._tell(trouble)

    def _tell(self, trouble: str) -> None:
        """Reports each notice once, and only as many as a person can read."""
        if trouble not in self._reported and len(self._reported) < MOST_TROUBLES:
            self._reported.add(trouble)
            self._on_trouble(trouble)
