"""Durations, sizes, whole numbers and dollars as people write them: the value, or a ValueError that says how."""

from __future__ import annotations

import math
import re
from datetime import timedelta

DURATION_EXAMPLES = "90m, 12h, 2d or 1h30m"
TIME_EXAMPLES = "30s, 2m or 1h"
SIZE_EXAMPLES = "1200GiB or 4.8TiB"
SIZE_PATTERN = r"(\d+(?:\.\d+)?)(GiB|TiB)"
DEAREST_NODE_USD_PER_HOUR = 1000.0
"""Seven times the dearest machine of the catalog (p6-b300.48xlarge, $142.42; prices.csv of 2026-01): a higher cap is a
typing error, such as 5504 for 55.04, and would never refuse anything."""
DEAREST_CLUSTER_USD_PER_HOUR = 1_000_000.0
"""A thousand nodes, the most there can be, at the highest price of a node."""
LONGEST_RUNTIME = timedelta(days=30)
"""So at least once a month somebody says that the cluster is still wanted; it also keeps every sum of money finite."""
_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PART = r"(\d+(?:\.\d{1,9})?)\s*(ms|[dhms])"
_DIGITS_LIMIT = 9
"""Longer numbers are typing errors; also keeps arithmetic in range."""


def duration_parts(text: str) -> tuple[tuple[str, str], ...]:
    """Each number of `text` with its unit (d, h, m, s, ms, in that order); empty where it is no duration."""
    compact = text.strip()
    if not re.fullmatch(rf"(?:{_PART})+", compact, re.ASCII):
        return ()
    parts = tuple((number[: _DIGITS_LIMIT * 2], unit) for number, unit in re.findall(_PART, compact, re.ASCII))
    units = [list(_UNITS_MS).index(unit) for _, unit in parts]
    return parts if units == sorted(set(units)) else ()


def parse_duration(text: str) -> timedelta:
    """The duration in a person's file, in whole numbers of d, h, m, s. Raises ValueError."""
    compact = text.strip()
    parts = duration_parts(compact)
    if not parts or not re.fullmatch(r"[\ddhms]+", compact, re.ASCII) or parts[-1][1] == "ms":
        raise ValueError(_duration_hint(compact))
    seconds = sum(int(number) * _UNITS_MS[unit] // 1000 for number, unit in parts)
    if seconds == 0:
        raise ValueError(f"a duration is longer than 0; write {DURATION_EXAMPLES}")
    return check_duration(timedelta(seconds=min(seconds, 10**9)))


def parse_seconds(text: str) -> float:
    """The seconds that a flag's time means: `30` and `30s` are seconds, `1h30m` is 90 minutes. Raises ValueError."""
    compact = text.strip()
    parts = ((compact, "s"),) if re.fullmatch(r"\d+(?:\.\d{1,9})?", compact, re.ASCII) else duration_parts(compact)
    seconds = sum(float(number) * _UNITS_MS[unit] for number, unit in parts) / 1000
    if not 0 < seconds < 10**_DIGITS_LIMIT:
        raise ValueError(f"{text!r} is no time; write {TIME_EXAMPLES}")
    return seconds


def check_duration(value: timedelta) -> timedelta:
    """`value` when it is a whole number of seconds in 1 s … 30 d. Raises ValueError."""
    if value < timedelta(seconds=1):
        raise ValueError(f"a duration is at least 1s; write {DURATION_EXAMPLES}")
    if value > LONGEST_RUNTIME:
        raise ValueError(f"longer than {LONGEST_RUNTIME.days}d, the longest that is taken")
    if value.microseconds:
        raise ValueError("a duration is a whole number of seconds")
    return value


def format_duration(value: timedelta) -> str:
    """`1h30m` for 90 minutes: what `parse_duration` reads back (whole seconds)."""
    rest = int(value.total_seconds())
    text = ""
    for letter in "dhms":
        count, rest = divmod(rest, _UNITS_MS[letter] // 1000)
        text += f"{count}{letter}" if count else ""
    return text or "0s"


def parse_size_gib(text: str) -> int:
    """The size in `text`, in GiB. Raises ValueError."""
    compact = text.strip()
    found = re.fullmatch(SIZE_PATTERN, compact, re.ASCII)
    if found is None:
        raise ValueError(_size_hint(compact))
    size = float(found[1][: _DIGITS_LIMIT + 3]) * (1024 if found[2] == "TiB" else 1)
    if size < 1 or size > 10**_DIGITS_LIMIT:
        raise ValueError("a size is between 1GiB and 1000000TiB")
    if abs(size - round(size)) > 1e-6 and found[2] == "GiB":
        raise ValueError("a size is a whole number of GiB")
    return round(size)


def format_size(gib: int) -> str:
    """`1200GiB`: what `parse_size_gib` reads back."""
    return f"{gib}GiB"


def parse_whole(text: str) -> int:
    """The whole number in `text`: decimal digits only. Raises ValueError."""
    compact = text.strip()
    if re.fullmatch(r"0\d+", compact, re.ASCII):
        raise ValueError(f"a leading 0 may mean octal; write {compact.lstrip('0') or '0'}")
    if not re.fullmatch(r"-?\d+", compact, re.ASCII):
        raise ValueError("not a whole number, such as 4")
    if len(compact) > _DIGITS_LIMIT + 1:
        raise ValueError("a number with too many digits")
    return int(compact)


def parse_dollars(text: str) -> float:
    """The amount in `text`: a plain decimal number. Raises ValueError."""
    compact = text.strip()
    if not re.fullmatch(r"-?\d+(\.\d+)?", compact, re.ASCII):
        raise ValueError(_dollar_hint(compact))
    return check_dollars(float(compact) if len(compact) <= 20 else math.inf)


def check_dollars(value: float) -> float:
    """`value` when it is an amount above 0 that a bill could have. Raises ValueError."""
    if not math.isfinite(value) or value <= 0:
        raise ValueError("an amount of US dollars is a number above 0; leave the key out for no cap")
    if value > 1e9:
        raise ValueError("more US dollars than anybody has; the most that is taken is 1000000000")
    return value


def check_hourly_dollars(value: float, most: float) -> float:
    """`value` when it is a price per hour that somebody could be asked for. Raises ValueError."""
    if check_dollars(value) > most:
        raise ValueError(f"a cap above ${most:.0f} an hour refuses nothing; the most that is taken is {most:.0f}")
    return value


def _duration_hint(text: str) -> str:
    unit = re.fullmatch(r"(\d+)\s*(?:(s)|(m)|(h)|(d))[a-z]*", text.lower(), re.ASCII)
    if re.fullmatch(r"\d+", text, re.ASCII):
        return f"a number without a unit; write {DURATION_EXAMPLES}"
    if unit is not None:
        return f"not a duration (did you mean {unit[1]}{unit[unit.lastindex or 0]}?)"
    return f"not a duration; write {DURATION_EXAMPLES}"


def _size_hint(text: str) -> str:
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        wish = f"{text}GiB" if text.isdigit() and int(text[:_DIGITS_LIMIT]) else SIZE_EXAMPLES
        return f"a number without a unit; write {wish}"
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([gt])i?b?", text.lower(), re.ASCII):
        return f"not a size: units are GiB and TiB (did you mean {found[1]}{found[2].upper()}iB?)"
    return f"not a size; write {SIZE_EXAMPLES}"


def _dollar_hint(text: str) -> str:
    plain = re.sub(r"[$,_\s]|usd", "", text.lower())
    if plain != text and re.fullmatch(r"\d+(\.\d+)?", plain, re.ASCII):
        return f"not a plain number of US dollars (did you mean {plain}?)"
    return "not a number of US dollars, such as 60 or 2.5"
