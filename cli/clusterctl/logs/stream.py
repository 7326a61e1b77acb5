"""What a node's reader prints, as lines with times of this computer's clock; knows where to go on after a loss."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl_infra.outputs import InventoryNode

from clusterctl.logs.line_time import SourceClock


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
        for row in rows:
            try:
                self._take(json.loads(row))
            except (ValueError, TypeError, KeyError):
                continue  # a login's greeting

    def _take(self, row: object) -> None:
        if isinstance(row, dict):
            if "now" in row:
                self._ahead_s = float(row["now"]) - self._now()
            elif "trouble" in row:
                self._take_trouble(row)
            return
        if not isinstance(row, list):
            return
        source, place, given_s, is_exact, text = row
        clock = self._clocks.setdefault(source, SourceClock())
        for line in str(text).splitlines() or [""]:
            at_s = clock.at_s(line, float(given_s), is_exact=bool(is_exact)) - self._ahead_s
            self._on_line(LogLine(slot=self._node.slot, name=self._node.name, source=str(source), at_s=at_s, text=line))
        self.places[str(source)] = str(place)

    def _take_trouble(self, row: Mapping[str, object]) -> None:
        source, trouble = str(row["source"]), str(row["trouble"])
        if row.get("missing"):
            self.missing.add(source)
        if row.get("over"):
            self.over.add(source)
        if trouble not in self._told:
            self._told.add(trouble)
            self._on_trouble(trouble)
