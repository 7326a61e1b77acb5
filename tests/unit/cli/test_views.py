"""Durations, sums and tables as people read them, lines under a node's name, and `env --json`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from clusterctl.commands.env import environment_json
from clusterctl.ssh.on_nodes import LONGEST_HELD_BYTES, LinePrefixer
from clusterctl.text.quantities import clock, duration, thousands, usd
from clusterctl.text.table import render_table
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=0), "0 s"),
        (timedelta(seconds=38.9), "38 s"),
        (timedelta(minutes=4, seconds=10), "4 m 10 s"),
        (timedelta(minutes=12), "12 m"),
        (timedelta(hours=1, minutes=12, seconds=59), "1 h 12 m"),
        (timedelta(hours=12), "12 h"),
        (timedelta(days=3, hours=4), "3 d 4 h"),
        (-timedelta(minutes=5), "5 m"),
    ],
)
def test_a_duration_is_its_two_largest_units(length: timedelta, text: str) -> None:
    assert duration(length) == text


def test_an_unknown_sum_is_never_nothing() -> None:
    assert usd(None) == "unknown"
    assert usd(0.0) == "$0.00"
    assert usd(1234.5) == "$1234.50"


def test_a_clock_time_of_another_day_has_its_date() -> None:
    assert clock(NOW + timedelta(hours=3), NOW) == "17:03 UTC"
    assert clock(NOW + timedelta(hours=20), NOW) == "2026-11-22 10:03 UTC"


def test_thousands_are_apart() -> None:
    assert thousands(16384) == "16 384"


def test_a_table_is_as_wide_as_its_cells_and_has_no_trailing_blanks() -> None:
    table = render_table(["node", "rank", "note"], [["train-0", "0", ""], ["日本", "10", "x"]], right={"rank"})
    assert table.splitlines() == ["  node     rank  note", "  train-0     0", "  日本       10  x"]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_prefixed_lines_lose_no_byte_however_they_come(chunks: list[bytes]) -> None:
    shown: list[bytes] = []
    prefixer = LinePrefixer("n", shown.append)
    for chunk in chunks:
        prefixer.feed(chunk)
    prefixer.finish()
    whole = b"".join(chunks)
    lines = whole.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    assert b"".join(shown) == b"".join(b"[n] " + line + b"\n" for line in lines)


def test_a_line_without_an_end_is_not_held_for_ever() -> None:
    shown: list[bytes] = []
    prefixer = LinePrefixer("n", shown.append)
    prefixer.feed(b"x" * (LONGEST_HELD_BYTES + 1))
    assert len(shown) == 1


def test_the_environment_reads_back_whatever_the_quotes() -> None:
    text = "# a comment\nRANK='2'\nA='it'\"'\"'s'\nEMPTY=''\nPLAIN=x\nTWO='a\nb'\n"
    assert environment_json(text) == {"RANK": "2", "A": "it's", "EMPTY": "", "PLAIN": "x", "TWO": "a\nb"}


def test_what_is_no_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="is no NAME=value"):
        environment_json("hello\n")
