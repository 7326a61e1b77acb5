"""Log lines for people and for programs."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl.logs.line_time import without_time
from clusterctl.logs.stream import LogLine

_BAD, _END = "\x1b[1;31m", "\x1b[0m"
_BAD_WORDS = ("Xid", "SXid", "Out of memory: Killed")


def log_text(line: LogLine, *, has_sources: bool, is_coloured: bool) -> str:
    """`[Node 0] [10:30:15] …`, times in UTC and not twice; with the source's name when there are several."""
    at = datetime.fromtimestamp(line.at_s, UTC)
    source = f" [{line.source}]" if has_sources else ""
    is_bad = is_coloured and any(word in line.text for word in _BAD_WORDS)
    text = without_time(line.text)
    text = f"{_BAD}{text}{_END}" if is_bad else text
    return f"[Node {line.slot}] [{at:%H:%M:%S}]{source} {text}"


def log_json(line: LogLine) -> dict[str, object]:
    """One line of NDJSON."""
    return {
        "node": line.name,
        "slot": line.slot,
        "time": datetime.fromtimestamp(line.at_s, UTC).isoformat(),
        "source": line.source,
        "line": line.text,
    }
