"""What comes from outside a machine is read within limits, and shown without what would move a cursor."""

from __future__ import annotations

import json

import pytest
from clusterctl_bootstrap.node.beats import LONGEST_BYTES, opened, sealed
from clusterctl_bootstrap.node.idle_peer import newest
from clusterctl_bootstrap.node.received import is_seconds, is_whole, parsed, printable

REFUSED = {
    "lists in lists": b"[" * 2000,
    "objects in objects": b'{"a":' * 200,
    "more bytes than allowed": b'"' + b"a" * 500 + b'"',
    "a number of 300 digits": b"9" * 300,
    "a number beyond all numbers": b"1e999",
    "infinity": b"Infinity",
    "no number": b"[NaN]",
    "no text": b"\xff\xfe",
    "nothing": b"",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_too_long_too_deep_or_no_finite_number_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(data, 400 if data.startswith(b'"') else 5000, 3)


def test_what_is_allowed_is_read_as_it_is() -> None:
    value = {"slot": 3, "quiet_s": 1.5, "words": ["a", None, True]}
    assert parsed(json.dumps(value), 200, 2) == value


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 11])
def test_a_whole_number_is_nothing_else(value: object) -> None:
    assert not is_whole(value, 0, 10)
    assert is_whole(10, 0, 10)


@pytest.mark.parametrize("value", [True, "1", None, -0.1, 1e10, float("inf"), float("nan")])
def test_seconds_are_a_number_within_what_is_allowed(value: object) -> None:
    assert not is_seconds(value, 1e9)
    assert is_seconds(0.5, 1e9)


def test_what_would_move_a_cursor_is_shown_and_not_sent() -> None:
    assert printable("\x1b]0;owned\x07a\r\nb ü\x9b") == "?]0;owned?a??b ü?"
    assert len(printable("x" * 10_000)) < 1000


SECRET = bytes(range(32))
BEAT = {"id": "0123456789ab", "slot": 3, "own": "ab" * 16, "theirs": ""}
ODD = {
    "no slot": {"slot": None},
    "a slot that is no number": {"slot": "3"},
    "a slot that is true": {"slot": True},
    "a slot below 0": {"slot": -1},
    "a list for a text": {"own": ["x"]},
    "a number for a text": {"theirs": 7},
    "a text that is too long": {"own": "x" * 65},
    "an answer that is no yes or no": {"alone": "yes"},
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD.keys())
def test_a_beat_whose_words_are_of_another_kind_is_none_even_with_the_secret(change: dict[str, object]) -> None:
    assert opened(SECRET, sealed(SECRET, {**BEAT, **change})) is None
    assert opened(SECRET, sealed(SECRET, BEAT)) == BEAT


@pytest.mark.parametrize("data", [b"[" * 400, b"[" * 2000, b'{"a":' * 80, b"9" * 400])
def test_a_datagram_that_would_stop_the_parser_is_no_beat(data: bytes) -> None:
    assert opened(SECRET, data) is None


def test_a_real_beat_is_well_below_what_is_read_of_a_datagram() -> None:
    assert 2 * len(sealed(SECRET, {**BEAT, "slot": 9999, "theirs": "cd" * 16, "alone": False})) < LONGEST_BYTES


REPORT = {"generation": 1, "quiet_s": 12.0, "signs": ["job [a]"], "saves": False, "asked": 0}
ODD_REPORTS = {
    "no object": ["x"],
    "a word that is missing": {key: value for key, value in REPORT.items() if key != "saves"},
    "quiet for ever": {**REPORT, "quiet_s": float("inf")},
    "quiet since before time": {**REPORT, "quiet_s": -1},
    "a text for a number": {**REPORT, "generation": "1"},
    "a number that counts nothing": {**REPORT, "asked": 10**300},
    "signs that are no list": {**REPORT, "signs": "job"},
}


@pytest.mark.parametrize("report", ODD_REPORTS.values(), ids=ODD_REPORTS.keys())
def test_a_report_of_an_odd_node_counts_as_none(report: object) -> None:
    with pytest.raises(ValueError, match="no report of a node"):
        newest(report, {})


def test_signs_of_life_are_few_and_printable() -> None:
    kept = newest({**REPORT, "signs": ["\x1b[2J", *["x" * 9999] * 500]}, {})
    assert kept["signs"][0] == "?[2J"
    assert sum(map(len, kept["signs"])) < 50_000
