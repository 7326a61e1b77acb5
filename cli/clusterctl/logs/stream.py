"""What a node's reader prints, as lines with times of this computer's clock; knows where to go on after a loss."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.strict_json import Fields, NotAsExpected, parsed, shortened

from clusterctl.logs.line_time import SourceClock

COLUMNS = ("source", "place", "given_s", "is_exact", "text")
MOST_ROW_BYTES = 16 * 1024 * 1024
MOST_PLACE = 64 * 1024
MOST_SOURCES = 100
MOST_TROUBLES = 100
LATEST_S = 9_000_000_000.0
"""In the year 2255: a later time is none that a view could show beside the others."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of one node."""

    slot: int
    name: str
    source: str
    at_s: float
    """Unix time by this computer's clock."""
    text: str


class NodeStream:
    """One node's rows, over as many connections as it takes; used by one thread at a time."""

    def __init__(
        self,
        node: InventoryNode,
        *,
        on_line: Callable[[LogLine], None],
        on_trouble: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._on_line = on_line
        self._on_trouble = on_trouble
        self._now = now
        self._rest = b""
        self._ahead_s = 0.0
        self._clocks: dict[str, SourceClock] = {}
        self._told: set[str] = set()
        self.missing: set[str] = set()
        """Sources of which the node has nothing to read."""
        self.over: set[str] = set()
        """Sources of which it never will have anything."""
        self.places: dict[str, str] = {}
        """Source → where its last line that arrived whole ended."""

    def begin(self) -> None:
        """A new connection: half a row of the old one is forgotten, and will be read again."""
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Passes on the lines that `chunk` completes."""
        *rows, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[: MOST_ROW_BYTES + 1]  # a row without an end is not kept: it cannot be read anyway
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
        said = Fields.of(row)
        if said.has("now"):
            self._ahead_s = said.number("now", low=0, high=LATEST_S) - self._now()
        elif said.has("trouble"):
            self._take_trouble(said)

    def _take_line(self, row: Fields) -> None:
        source, place = row.text("source", most=200), row.text("place", most=MOST_PLACE)
        text = row.row["text"]  # with NUL, too: a log may hold anything
        if not isinstance(text, str):
            raise NotAsExpected(f"text is {shortened(text)}, no text")
        given_s = row.number("given_s", low=0, high=LATEST_S)
        if source not in self._clocks and len(self._clocks) >= MOST_SOURCES:
            raise NotAsExpected(f"more than {MOST_SOURCES} sources")
        clock = self._clocks.setdefault(source, SourceClock())
        for line in text.splitlines() or [""]:
            at_s = clock.at_s(line, given_s, is_exact=row.flag("is_exact")) - self._ahead_s
            at_s = min(max(0.0, at_s), LATEST_S)
            self._on_line(LogLine(slot=self._node.slot, name=self._node.name, source=source, at_s=at_s, text=line))
        self.places[source] = place

    def _take_trouble(self, row: Fields) -> None:
        source, trouble = row.text("source"), row.text("trouble")
        if row.flag("missing"):
            self.missing.add(source)
        if row.flag("over"):
            self.over.add(source)
        self._tell(trouble)

    def _tell(self, trouble: str) -> None:
        """Each once, and no more than a person reads."""
        if trouble not in self._told and len(self._told) < MOST_TROUBLES:
            self._told.add(trouble)
            self._on_trouble(trouble)
