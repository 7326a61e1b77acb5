"""When a log line was written, as the line itself says. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

# The times that Linux programs write at the beginning of their lines; one without a zone is UTC, as nodes are.
_ISO = re.compile(r"\[?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)?\s?(Z|[+-]\d\d:?\d\d)?")
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)\b")
_LOOK_AT = 40


def written_at_s(line: str, *, around_s: float) -> float | None:
    """The Unix time at the line's beginning, or None. `around_s`: a time near it; syslog's lines have no year."""
    head = line[:_LOOK_AT]
    try:
        if match := _ISO.match(head):
            day, time, fraction, zone = match.groups()
            text = f"{day}T{time}.{(fraction or '0'):0<6}{'+00:00' if zone in (None, 'Z') else zone}"
            return datetime.fromisoformat(text).timestamp()
        if match := _SYSLOG.match(head):
            return _syslog_s(*match.groups(), around=datetime.fromtimestamp(around_s, UTC))
    except ValueError:
        return None  # digits in the form of a time, such as 25:61:00
    return None


def without_time(line: str) -> str:
    """The line without the time at its beginning, for a view that has it already."""
    match = _ISO.match(line) or _SYSLOG.match(line)
    return line if match is None else line[match.end() :].lstrip(" ]-:\t") or line


def _syslog_s(month: str, day: str, time: str, *, around: datetime) -> float:
    at = datetime.strptime(f"{around.year} {month} {day} {time} +0000", "%Y %b %d %H:%M:%S %z")
    if at > around + timedelta(days=1):
        at = at.replace(year=around.year - 1)
    return at.timestamp()


class SourceClock:
    """Gives each line of one source a time that never goes backwards; a line without one gets the previous line's."""

    def __init__(self) -> None:
        self._last_s: float | None = None

    def at_s(self, text: str, given_s: float, *, is_exact: bool) -> float:
        """The line's time. `given_s`: the reader's, which is exact or only an upper bound."""
        own = written_at_s(text, around_s=given_s)
        if own is None:
            own = given_s if is_exact or self._last_s is None else self._last_s
        self._last_s = own if self._last_s is None else max(own, self._last_s)
        return self._last_s
