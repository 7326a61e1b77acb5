"""Moments as people type them: `17:30`, `2026-11-22 08:00`, ISO 8601; in UTC if no zone is given, like all that we
show.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

EXAMPLES = "17:30 (the next time it is that late), 2026-11-22 08:00 or 2026-11-22T08:00:00+01:00"


def parse_instant(text: str, *, now: datetime) -> datetime:
    """The moment that `text` means, in UTC to the second. Raises ValueError."""
    compact = text.strip().removesuffix("UTC").strip()
    if found := re.fullmatch(r"(\d{1,2}):(\d\d)", compact, re.ASCII):
        hour, minute = int(found[1]), int(found[2])
        if hour > 23 or minute > 59:
            raise ValueError(f"{text!r} is no time of day; write {EXAMPLES}")
        today = now.astimezone(UTC).replace(hour=hour, minute=minute, second=0, microsecond=0)
        return today if today > now else today + timedelta(days=1)
    try:
        moment = datetime.fromisoformat(compact)
    except ValueError as e:
        raise ValueError(f"{text!r} is no moment; write {EXAMPLES}") from e
    if re.fullmatch(r"[\dW-]{8,10}", compact, re.ASCII):
        raise ValueError(f"{text!r} is a day without a time; write {EXAMPLES}")
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).replace(microsecond=0)


def tomorrow_note(text: str | None, *, now: datetime) -> str | None:
    """`17:30 UTC has passed today, so 17:30 means 2026-11-22 17:30 UTC`; None where no time of day has passed."""
    if text is None or parse_instant(text, now=now) == parse_instant(text, now=now + timedelta(days=1)):
        return None  # the text has a date
    meant = parse_instant(text, now=now)
    if meant.date() == now.astimezone(UTC).date():
        return None
    return f"{meant:%H:%M} UTC has passed today, so {text.strip()} means {meant:%Y-%m-%d %H:%M} UTC"


def typed_instant(moment: datetime) -> str:
    """`2026-11-22T08:00:00Z`: the moment in words that `parse_instant` takes, whenever they are typed."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def utc_now() -> datetime:
    """This computer's time, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
