"""The integration tests begin with the longest, so that none of those is waited for alone."""

from __future__ import annotations

from tests.integration.conftest import APART, LONGEST, TOGETHER, longest_first
from tests.integration.rehearsed import ROOT

FOLDER = "tests/integration"


def test_files_that_are_named_are_there() -> None:
    named = [name for name in (*APART, *TOGETHER, *LONGEST) if not (ROOT / FOLDER / name).exists()]
    assert named == []


def test_the_longest_begin_then_files_with_many_tests_then_the_others_as_found() -> None:
    found = [
        f"{FOLDER}/cli/test_nodes.py::test_one",
        f"{FOLDER}/cli/test_nodes.py::test_other",
        f"{FOLDER}/barrier/test_few.py::test_one",
        f"{FOLDER}/storage/test_many.py::test_one",
        f"{FOLDER}/storage/test_many.py::test_other",
        f"{FOLDER}/{LONGEST[1]}::test_one",
        f"{FOLDER}/{LONGEST[0]}::test_one",
    ]
    assert longest_first(found) == [6, 5, 3, 4, 0, 1, 2]
