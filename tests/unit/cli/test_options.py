from __future__ import annotations

import pytest
from clusterctl.options import parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("1.5", 1.5), ("30s", 30), ("2m", 120), ("1h", 3600), ("500ms", 0.5), (" 2 m ", 120), ("1h30m", 5400)],
)
def test_a_time_is_seconds_unless_it_says_otherwise(text: str, seconds: float) -> None:
    assert parse_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1d", "abc", "nan", "inf", "1e3", "²", "1 2", "1h30", "0h0m"])
def test_what_is_no_time_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(ValueError, match="write 30s, 2m or 1h"):
        parse_time(text)
