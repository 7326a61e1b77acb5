"""Secrets in what ranks say."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from clusterctl.on_node.job.rank import RankOutput
from clusterctl.on_node.job.redaction import hidden_bytes, redacted


@pytest.mark.parametrize(
    ("values", "line", "shown"),
    [
        (["s3cret"], b"token s3cret, again s3cret", b"token ***, again ***"),
        (["first line\nsecond line"], b"second line of a key", b"*** of a key"),
        (["abcd", "abcdef"], b"abcdef", b"***"),
        (["1", "abc"], b"1 abc", b"1 abc"),
        ([], b"nothing", b"nothing"),
    ],
)
def test_each_line_of_each_secret_is_replaced(values: list[str], line: bytes, shown: bytes) -> None:
    assert redacted(line, hidden_bytes(values)) == shown


def test_a_rank_s_secret_is_in_neither_its_log_nor_its_last_words(tmp_path: Path) -> None:
    passed_on = io.BytesIO()
    output = RankOutput(3, tmp_path / "3.log", passed_on, hidden=hidden_bytes(["s3cret"]))
    output.copy(io.BytesIO(b"my s3cret\n"))
    assert passed_on.getvalue() == b"3\tmy ***\n"
    assert (tmp_path / "3.log").read_bytes() == b"my ***\n"
    assert output.last_lines() == ["my ***"]
    output.close()
