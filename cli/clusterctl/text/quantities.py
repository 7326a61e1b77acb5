"""Times and sums as people read them: `1 h 12 m`, `$265.85`, `17:22 UTC`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNKNOWN = "unknown"


def duration(length: timedelta) -> str:
    """The two largest units of `length`: `3 d 4 h`, `1 h 12 m`, `4 m 10 s`, `38 s`; one if it is whole: `12 h`."""
    seconds = int(abs(length).total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return _two(days, "d", hours, "h")
    if hours:
        return _two(hours, "h", minutes, "m")
    if minutes:
        return _two(minutes, "m", seconds % 60, "s")
    return f"{seconds} s"


def rounded(usd: float | None) -> float | None:
    """US dollars for JSON, to the hundredth of a cent; unknown stays null."""
    return None if usd is None else round(usd, 4)


def usd(amount: float | None) -> str:
    """`$1234.50`; an unknown sum is `unknown`, never $0."""
    return UNKNOWN if amount is None else f"${amount:.2f}"


def clock(at: datetime, now: datetime) -> str:
    """`17:22 UTC`, with the date before it unless it is within the same day as `now`."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"


def count(number: int, noun: str) -> str:
    """`1 node`, `4 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def thousands(number: int) -> str:
    """`9 812`: groups of three with a space between."""
    return f"{number:,}".replace(",", " ")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit}" + (f" {small} {small_unit}" if small else "")
