"""Lines that are longer than what is read at once: whose they are, and what is hidden in them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from clusterctl.on_node.job.output_log import LINE_BYTES, LauncherOutput, OutputLog, read_from
from clusterctl.on_node.job.rank import RankOutput
from clusterctl.on_node.job.redaction import Redactor, hidden_bytes, redacted
from hypothesis import example, given
from hypothesis import strategies as st

SECRET = b"s3cret-of-ours"
HIDDEN = hidden_bytes([SECRET.decode()])


def written_by_rank(folder: Path, text: bytes, *, hidden: tuple[bytes, ...] = ()) -> tuple[bytes, bytes, list[str]]:
    """The rank's own log, what it passes on, and its last lines."""
    stream = io.BytesIO()
    output = RankOutput(3, folder / "3.log", stream, hidden=hidden)
    output.copy(io.BytesIO(text))
    output.close()
    return (folder / "3.log").read_bytes(), stream.getvalue(), output.last_lines()


def kept_of(folder: Path, text: bytes, *, hidden: tuple[bytes, ...] = ()) -> tuple[list[tuple[str, str]], list[str]]:
    """What the node's log has of a launcher's output, as (rank, text), and the launcher's last words."""
    log = OutputLog(folder)
    output = LauncherOutput(log, hidden=hidden)
    output.follow(io.BytesIO(text))
    output.drain(60.0)
    log.close()
    rows = [line.split(" ", 2) for _, line in read_from(folder, (1, 0))]
    return [(rank, part) for _, rank, part in rows], output.last_lines()


@pytest.mark.parametrize("length", [LINE_BYTES - 3, LINE_BYTES - 1, LINE_BYTES, LINE_BYTES + 1, 3 * LINE_BYTES + 7])
def test_all_of_a_rank_s_long_line_is_the_rank_s_and_the_next_line_is_another(tmp_path: Path, length: int) -> None:
    line = bytes(97 + place % 26 for place in range(length))
    log, passed_on, _ = written_by_rank(tmp_path, line + b"\nnext\n")
    assert log.replace(b"\n", b"") == line + b"next"
    rows, last_words = kept_of(tmp_path, passed_on)
    assert {rank for rank, _ in rows} == {"3"}
    assert last_words == []
    assert "".join(text for _, text in rows[:-1]).encode() == line
    assert rows[-1] == ("3", "next")
    assert all(text for _, text in rows), "no line is made of nothing"


def test_a_long_line_of_another_writer_with_a_rank_s_number_stays_the_rank_s(tmp_path: Path) -> None:
    rows, last_words = kept_of(tmp_path, b"7\t" + b"x" * 300_000 + b"\n\n-\n")
    assert [rank for rank, _ in rows[-2:]] == ["-", "-"]
    assert {rank for rank, _ in rows[:-2]} == {"7"}
    assert sum(len(text) for _, text in rows[:-2]) == 300_000
    assert last_words == ["", "-"]


@pytest.mark.parametrize("shown", range(1, len(SECRET)))
def test_a_secret_is_hidden_also_where_a_long_line_is_parted(tmp_path: Path, shown: int) -> None:
    text = b"x" * (LINE_BYTES - shown) + SECRET + b"y" * 20
    for log in written_by_rank(tmp_path, text + b"\n", hidden=HIDDEN)[:2]:
        joined = re.sub(rb"\n(3\t)?", b"", log)
        assert re.fullmatch(rb"(3\t)?x+(\*\*\*)+y{20}", joined)
        assert joined.count(b"x") == LINE_BYTES - shown
    rows, last_words = kept_of(tmp_path, text, hidden=HIDDEN)
    assert re.fullmatch(r"x+(\*\*\*)+y{20}", "".join(part for _, part in rows))
    assert re.fullmatch(r"x*(\*\*\*)+y{20}", "".join(last_words)[-40:])


def test_secrets_that_overlap_are_both_hidden() -> None:
    assert redacted(b"abcdefghij.", hidden_bytes(["abcdef", "efghij"])) == b"***."
    assert redacted(b"ababab.", hidden_bytes(["abab"])) == b"***."


SECRETS = st.lists(st.text("ab", min_size=4, max_size=9), max_size=3)
"""Of few letters, so that they are often in the text, and overlap themselves and each other."""


@given(secrets=SECRETS, text=st.text("abc", max_size=60).map(str.encode), sizes=st.lists(st.integers(0, 7)))
@example(secrets=["abab"], text=b"abababab", sizes=[1] * 7)
def test_no_byte_of_a_secret_is_shown_and_every_other_one_is_wherever_a_text_is_parted(
    secrets: list[str], text: bytes, sizes: list[int]
) -> None:
    hidden = hidden_bytes(secrets)
    redactor, shown, rest = Redactor(hidden), [], text
    for size in sizes:
        shown.append(redactor.feed(rest[:size], is_last=False))
        rest = rest[size:]
    shown.append(redactor.feed(rest, is_last=True))
    together = re.sub(rb"\*+", b"*", b"".join(piece for piece in shown if piece is not None))
    assert together == without(text, hidden)


def without(text: bytes, hidden: tuple[bytes, ...]) -> bytes:
    """The text with one * for all neighbouring bytes that are part of any secret."""
    places = {
        place
        for secret in hidden
        for begin in range(len(text))
        if text.startswith(secret, begin)
        for place in range(begin, begin + len(secret))
    }
    return re.sub(rb"\*+", b"*", bytes(42 if place in places else byte for place, byte in enumerate(text)))
