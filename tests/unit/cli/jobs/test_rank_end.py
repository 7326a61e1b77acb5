"""What a rank's parent wrote is believed only where it is the job's own file, and what it should be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from clusterctl.on_node.job.node_ranks import RANK_FILE
from clusterctl.on_node.job.rank_end import checked_end, rank_end, rank_parent

from tests.unit.cli.jobs.job_specs import RANK_END


def test_what_the_parent_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "4.json"
    path.write_text(json.dumps({**RANK_END, "more": "left out"}))
    assert rank_end(path, os.getuid()) == RANK_END


def test_a_link_a_pipe_and_another_user_s_file_are_not_read(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "0.json", tmp_path / "1.json"
    real.write_text(json.dumps(RANK_END))
    link.symlink_to(real)
    os.mkfifo(pipe)
    for path, uid in ((link, os.getuid()), (pipe, os.getuid()), (real, os.getuid() + 1)):
        with pytest.raises((OSError, ValueError)):
            rank_end(path, uid)


@pytest.mark.parametrize(
    "words",
    [
        [],
        "x",
        {},
        {**RANK_END, "at_s": "soon"},
        {**RANK_END, "lines": None},
        {**RANK_END, "rank": None},
        {**RANK_END, "code": {}},
        {**RANK_END, "code": 10**30},
        {**RANK_END, "signal": -1},
        {**RANK_END, "rank": -1},
        {**RANK_END, "at_s": float("nan")},
        {**RANK_END, "at_s": 10**400},
    ],
)
def test_words_of_another_shape_are_refused(words: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 which words are wrong is nobody's business
        checked_end(words)


def test_files_of_too_many_levels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "4.json"
    path.write_text("[" * 50_000)
    for read in (rank_end, rank_parent):
        with pytest.raises(ValueError, match="too many levels"):
            read(path, os.getuid())


def test_long_last_words_are_cut() -> None:
    found = checked_end({**RANK_END, "lines": ["x" * 9000] * 30, "error": "e" * 9000})
    assert [len(line) for line in found["lines"]] == [2000] * 20
    assert len(found["error"]) == 4000


def test_an_end_without_code_and_signal_is_a_failure() -> None:
    assert checked_end({**RANK_END, "code": None})["code"] == 1
    assert checked_end({**RANK_END, "code": None, "signal": 9})["code"] is None


@pytest.mark.parametrize(("text", "process"), [("[12, 3400]", (12, 3400)), ("12", None), ("[1]", None), ("x", None)])
def test_a_rank_s_parent_is_a_number_and_a_start(tmp_path: Path, text: str, process: tuple[int, int] | None) -> None:
    path = tmp_path / "0.pid"
    path.write_text(text)
    if process is None:
        with pytest.raises(ValueError):  # noqa: PT011 as above
            rank_parent(path, os.getuid())
    else:
        assert rank_parent(path, os.getuid()) == process


@pytest.mark.parametrize(
    ("name", "is_rank"), [("0", True), ("1023", True), ("²", False), ("٣", False), ("-1", False), ("9" * 200, False)]
)
def test_a_file_that_a_job_made_is_a_rank_s_only_by_a_number(name: str, is_rank: bool) -> None:
    assert (RANK_FILE.fullmatch(name) is not None) is is_rank
