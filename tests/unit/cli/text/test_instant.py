"""Moments as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from clusterctl.text.instant import parse_instant, tomorrow_note, typed_instant

NOW = datetime(2026, 11, 21, 16, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("17:30", datetime(2026, 11, 21, 17, 30, tzinfo=UTC)),
        ("17:30 UTC", datetime(2026, 11, 21, 17, 30, tzinfo=UTC)),
        ("16:30", datetime(2026, 11, 22, 16, 30, tzinfo=UTC)),
        ("2026-11-22 08:00", datetime(2026, 11, 22, 8, 0, tzinfo=UTC)),
        ("2026-11-22T08:00:05Z", datetime(2026, 11, 22, 8, 0, 5, tzinfo=UTC)),
        ("2026-11-22T08:00:00+01:00", datetime(2026, 11, 22, 7, 0, tzinfo=UTC)),
    ],
)
def test_times_without_a_zone_are_utc_and_a_time_of_day_is_the_next_one(text: str, moment: datetime) -> None:
    assert parse_instant(text, now=NOW) == moment


@pytest.mark.parametrize(
    "text", ["", "25:00", "17:60", "tomorrow", "2026-11-22", "2026-W48-3", "2026-13-01T00:00", "1700", "2h"]
)
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write 17:30"):
        parse_instant(text, now=NOW)


def test_a_moment_that_is_offered_to_be_typed_is_taken_as_the_same() -> None:
    assert typed_instant(NOW) == "2026-11-21T16:30:12Z"
    assert parse_instant(typed_instant(NOW), now=NOW + timedelta(days=9)) == NOW


@pytest.mark.parametrize("late", [timedelta(0), timedelta(minutes=1), timedelta(hours=9)])
def test_a_time_of_day_that_has_passed_is_said_to_be_tomorrows(late: timedelta) -> None:
    now = datetime(2026, 11, 21, 14, 30, tzinfo=UTC) + late
    assert tomorrow_note("14:30", now=now) == "14:30 UTC has passed today, so 14:30 means 2026-11-22 14:30 UTC"


@pytest.mark.parametrize("text", [None, "14:30", "2026-11-22 08:00", "2026-11-20 08:00"])
def test_nothing_is_said_of_a_time_that_comes_today_or_has_a_date(text: str | None) -> None:
    assert tomorrow_note(text, now=datetime(2026, 11, 21, 14, 29, tzinfo=UTC)) is None
