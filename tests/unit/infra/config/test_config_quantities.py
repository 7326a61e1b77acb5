"""Durations, sizes, numbers and dollars as people write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from clusterctl_infra.config.quantities import (
    check_duration,
    format_duration,
    format_size,
    parse_dollars,
    parse_duration,
    parse_seconds,
    parse_size_gib,
    parse_whole,
)
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(1, 30 * 86400))
def test_a_duration_is_read_back_as_written(seconds: int) -> None:
    value = timedelta(seconds=seconds)
    assert parse_duration(format_duration(value)) == value


def test_a_part_of_a_second_is_no_duration() -> None:
    with pytest.raises(ValueError, match="a duration is a whole number of seconds"):
        check_duration(timedelta(seconds=90, milliseconds=500))


@given(st.integers(1, 10**8))
def test_a_size_is_read_back_as_written(gib: int) -> None:
    assert parse_size_gib(format_size(gib)) == gib


@pytest.mark.parametrize(
    ("text", "hours"),
    [("90m", 1.5), ("12h", 12), ("2d", 48), ("1h30m", 1.5), ("1d12h", 36), ("3600s", 1), ("86400s", 24), ("30d", 720)],
)
def test_a_duration_has_units(text: str, hours: float) -> None:
    assert parse_duration(text) == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ("30s", 30),
        ("123456", 123456),
        ("86400.25s", 86400.25),
        ("2m", 120),
        ("500ms", 0.5),
        (" 2 m ", 120),
        ("1h30m", 5400),
        ("1.5d", 129600),
    ],
)
def test_a_flags_time_is_seconds_unless_it_says_otherwise(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "0", "0s", "-1", "abc", "nan", "inf", "1e3", "²", "1 2", "1h30", "0h0m", "30m1h", "1h1h", "9" * 400, "1w"],
)
def test_what_is_no_time_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(ValueError, match="write 30s, 2m or 1h"):
        parse_seconds(text)


@given(st.integers(1, 30 * 86400))
def test_a_duration_of_a_file_means_the_same_after_a_flag(seconds: int) -> None:
    assert parse_seconds(format_duration(timedelta(seconds=seconds))) == seconds


@pytest.mark.parametrize(("text", "gib"), [("1200GiB", 1200), ("4.8TiB", 4915), ("1TiB", 1024), ("12TiB", 12288)])
def test_a_size_has_units(text: str, gib: int) -> None:
    assert parse_size_gib(text) == gib


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (parse_duration, "12", "a number without a unit; write 90m, 12h, 2d or 1h30m"),
        (parse_duration, "12 hours", "not a duration (did you mean 12h?)"),
        (parse_duration, "3 Days", "not a duration (did you mean 3d?)"),
        (parse_duration, "45min", "not a duration (did you mean 45m?)"),
        (parse_duration, "12:30:00", "not a duration; write 90m, 12h, 2d or 1h30m"),
        (parse_duration, "", "not a duration; write"),
        (parse_duration, "-1h", "not a duration; write"),
        (parse_duration, "0h", "longer than 0"),
        (parse_duration, "1.5h", "not a duration"),
        (parse_duration, "1 h", "not a duration (did you mean 1h?)"),
        (parse_duration, "5ms", "not a duration"),
        (parse_duration, "30m1h", "not a duration"),
        (parse_duration, "31d", "longer than 30d"),
        (parse_duration, "9" * 500 + "d", "longer than 30d"),
        (parse_duration, "\u0661h", "not a duration"),
        (parse_size_gib, "1200", "a number without a unit; write 1200GiB"),
        (parse_size_gib, "0.5", "a number without a unit; write 1200GiB or 4.8TiB"),
        (parse_size_gib, "1200GB", "did you mean 1200GiB?"),
        (parse_size_gib, "2t", "did you mean 2TiB?"),
        (parse_size_gib, "0GiB", "between 1GiB and"),
        (parse_size_gib, "1.5GiB", "a whole number of GiB"),
        (parse_size_gib, "big", "not a size; write"),
        (parse_whole, "four", "not a whole number"),
        (parse_whole, "4.0", "not a whole number"),
        (parse_whole, "010", "a leading 0 may mean octal; write 10"),
        (parse_whole, "0x10", "not a whole number"),
        (parse_whole, "1_000", "not a whole number"),
        (parse_whole, "1" * 5000, "too many digits"),
        (parse_whole, "\u0663", "not a whole number"),
        (parse_dollars, "nan", "not a number of US dollars"),
        (parse_dollars, ".inf", "not a number of US dollars"),
        (parse_dollars, "1e3", "not a number of US dollars"),
        (parse_dollars, "$60", "did you mean 60?"),
        (parse_dollars, "1,000 USD", "did you mean 1000?"),
        (parse_dollars, "0", "above 0"),
        (parse_dollars, "-5", "above 0"),
        (parse_dollars, "9" * 400, "above 0"),
        (parse_dollars, "1000000001", "more US dollars than anybody has"),
    ],
)
def test_what_is_wrong_says_how_to_write_it(read: Callable[[str], object], text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is checked below
        read(text)
    assert sentence in str(caught.value)
