"""Which jobs run on a node, read from what the shell command there printed."""

from __future__ import annotations

import pytest
from clusterctl.jobs.running import jobs_text
from clusterctl.on_node.running_jobs import other_lines, running_jobs

STATUS = '{"phase": "ready"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        (f"{STATUS}\n", ()),
        (f"{STATUS}\njob train-1123\njob b\njob b\n", ("b", "train-1123")),
        ("job Not a name\njob \njob ../etc\n job b\n", ()),
    ],
)
def test_only_names_of_jobs_are_read(text: str, expected: tuple[str, ...]) -> None:
    assert running_jobs(text) == expected


def test_what_else_was_printed_is_left() -> None:
    assert other_lines(f"{STATUS}\njob b\n") == STATUS


def test_jobs_are_told_with_their_nodes() -> None:
    assert jobs_text({"train": (0, 1, 2), "other": (5,)}) == "train on 0-2, other on 5"
