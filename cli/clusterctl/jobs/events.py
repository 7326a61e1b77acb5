"""`clusterctl job events`: what happened to a job on all its nodes, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any  # JSON

HEADER = ("time", "node", "attempt", "event")
MOST_TEXT = 300


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """One event on one node."""

    slot: int
    at_s: float
    event: str
    words: Mapping[str, Any]

    @property
    def text(self) -> str:
        """`running`, `rank 3 exited with code 7`, `failed: Node 1 …`."""
        if self.event == "rank ended":
            who = "the launcher" if self.words.get("rank") is None else f"rank {self.words['rank']}"
            signal, code = self.words.get("signal"), self.words.get("code")
            return f"{who} was killed by signal {signal}" if signal else f"{who} exited with code {code}"
        why = self.words.get("why")
        by = f" by {self.words['by']}" if self.words.get("by") else ""
        return f"{self.event}{by}{f': {why}' if why else ''}"[:MOST_TEXT]


def merged_events(by_slot: Mapping[int, Iterable[Any]]) -> list[JobEvent]:
    """The events of all nodes, by time; malformed ones are left out, because the text comes from nodes."""
    found = []
    for slot, rows in by_slot.items():
        for row in rows:
            try:
                words = {name: value for name, value in row.items() if name not in ("at_s", "event")}
                event = JobEvent(slot=slot, at_s=float(row["at_s"]), event=str(row["event"]), words=words)
                datetime.fromtimestamp(event.at_s, UTC)
            except (TypeError, ValueError, LookupError, AttributeError, OverflowError, OSError):
                continue
            found.append(event)
    return sorted(found, key=lambda event: (event.at_s, event.slot))


def event_row(event: JobEvent) -> Sequence[str]:
    """The event's row in the table whose columns are `HEADER`."""
    at = datetime.fromtimestamp(event.at_s, UTC)
    return (f"{at:%Y-%m-%d %H:%M:%S}", str(event.slot), str(event.words.get("attempt", "")), event.text)


def event_json(event: JobEvent) -> dict[str, object]:
    """The event as one line of NDJSON."""
    at = datetime.fromtimestamp(event.at_s, UTC).isoformat()
    # `slot` comes last, so that a node cannot claim to be another one.
    return {**event.words, "time": at, "slot": event.slot, "event": event.event}
