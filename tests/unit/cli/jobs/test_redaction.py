"""Secrets in what ranks say."""

from __future__ import annotations

import io
import json
import os
import re
import tracemalloc
from pathlib import Path

import pytest
from clusterctl.on_node.job.job_environment import MOST_SECRET_BYTES, own_secrets, secret_values
from clusterctl.on_node.job.output_log import LauncherOutput, OutputLog
from clusterctl.on_node.job.rank import RankOutput, own_error
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


def test_a_launcher_s_traceback_of_a_rank_shows_no_secret(tmp_path: Path) -> None:
    log = OutputLog(tmp_path)
    output = LauncherOutput(log, hidden=hidden_bytes(["s3cret"]))
    output.follow(io.BytesIO(b"traceback: bad token s3cret\n"))
    output.drain(60.0)
    log.close()
    assert output.last_lines() == ["traceback: bad token ***"]
    assert (tmp_path / "output.000001").read_bytes().endswith(b" - traceback: bad token ***\n")


@pytest.mark.parametrize("length", [64 * 1024 + 1, MOST_SECRET_BYTES])
def test_a_long_secret_is_hidden_in_a_launcher_s_words_as_in_a_rank_s(tmp_path: Path, length: int) -> None:
    secret = "".join(chr(97 + place % 26) for place in range(length))
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "TOKEN").write_text(secret)
    line, stream, log = f"bad token {secret} end\n".encode(), io.BytesIO(), OutputLog(tmp_path)
    rank = RankOutput(3, tmp_path / "3.log", stream, hidden=hidden_bytes(secret_values(folder).values()))
    rank.copy(io.BytesIO(line))
    rank.close()
    launcher = LauncherOutput(log, hidden=hidden_bytes(own_secrets(folder, os.getuid()).values()))
    launcher.follow(io.BytesIO(line))
    launcher.drain(60.0)
    log.close()
    for shown in ("".join(rank.last_lines()), "".join(launcher.last_lines())):
        assert re.fullmatch(r"bad token (\*\*\*)+ end", shown)


def test_a_secret_that_json_writes_otherwise_is_not_in_a_rank_s_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = 'a"b\\c-\u00fc'
    file = tmp_path / "error.json"
    file.write_text(json.dumps({"message": {"message": f"RuntimeError: bad token {secret}"}}))
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    assert own_error(hidden_bytes([secret])) == "RuntimeError: bad token ***"


def test_root_takes_no_link_of_the_user_s_for_a_secret_and_waits_for_no_pipe(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "root-s").write_text("root's own")
    (folder / "LINK").symlink_to(tmp_path / "root-s")
    os.mkfifo(folder / "PIPE")
    (folder / "TOKEN").write_text("s3cret")
    assert own_secrets(folder, os.getuid()) == {"TOKEN": "s3cret"}
    assert own_secrets(folder, os.getuid() + 1) == {}
    assert own_secrets(tmp_path / "none", os.getuid()) == {}


def test_a_large_log_with_a_value_everywhere_needs_no_memory_for_each_of_its_places() -> None:
    content, hidden = b"node nodes=4 " * 50_000, hidden_bytes(["node", "odes"])
    tracemalloc.start()
    try:
        shown = redacted(content, hidden)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shown == b"*** ***=4 " * 50_000
    assert peak_bytes < 3 * len(content)
