"""The rehearsed region for the engine's side: where it says that it listens, and what it says when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # region.json

import pytest
from clusterctl.engine.region import announced_endpoint, sentence_and_hint
from clusterctl.home import Home
from clusterctl_infra.names import CHECKS_SIGNATURES, IS_ENDING

PID = 4711
ENDPOINT = "http://127.0.0.1:36589"
ROW: dict[str, Any] = {"endpoint": ENDPOINT, "pid": PID, CHECKS_SIGNATURES: True}
SERVER = ("python3", "-P", "-m", "clusterctl_rehearsal.server.process")


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("clusterctl rehearse: no room left\n  next: df -h\n", ("no room left", "df -h")),
        ("building\nclusterctl rehearse: no network", ("no network", None)),
        ("", ("", None)),
    ],
)
def test_the_last_sentence_and_the_command_are_taken(stderr: str, expected: tuple[str, str | None]) -> None:
    assert sentence_and_hint(stderr) == expected


def announced(folder: Path, row: object, words: tuple[str, ...] = SERVER) -> str | None:
    """The endpoint, where region.json says `row` and its process was started with these words."""
    home = Home(path=folder)
    home.rehearsal_dir.mkdir()
    (home.rehearsal_dir / "region.json").write_text(json.dumps(row))
    return announced_endpoint(home, lambda pid: words if pid == PID else ())


@pytest.mark.parametrize("row", [ROW, {**ROW, IS_ENDING: False}])
def test_a_region_that_lives_is_where_it_says(tmp_path: Path, row: dict[str, Any]) -> None:
    assert announced(tmp_path, row) == ENDPOINT


@pytest.mark.parametrize(
    "row",
    [
        {**ROW, IS_ENDING: True},
        {**ROW, CHECKS_SIGNATURES: False},
        {**ROW, "pid": PID + 1},
        {key: value for key, value in ROW.items() if key != "pid"},
        [],
        None,
    ],
)
def test_a_region_that_is_about_to_end_or_no_usable_one_is_none(tmp_path: Path, row: object) -> None:
    assert announced(tmp_path, row) is None


@pytest.mark.parametrize("words", [(), ("vim", "clusterctl_rehearsal")])
def test_an_announcement_whose_process_is_no_region_is_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert announced(tmp_path, ROW, words) is None
    assert announced_endpoint(Home(path=tmp_path / "absent")) is None
