"""Integration tests begin with the longest, so that no worker is left alone with one; some tests are quick."""

from __future__ import annotations

import re

import pytest

from tests.integration.conftest import APART, LONGEST, SHARING, SHORT, TOGETHER, longest_first, shared_by
from tests.integration.quick import QUICK, is_quick
from tests.integration.rehearsed import ROOT

FOLDER = "tests/integration"


def test_files_that_are_named_are_there() -> None:
    shared = [name for places in SHARING.values() for name in places]
    named = [name for name in (*APART, *TOGETHER, *SHORT, *shared, *LONGEST) if not (ROOT / FOLDER / name).exists()]
    assert named == []


def test_the_longest_begin_then_files_with_many_tests_then_others_as_found_and_short_ones_at_last() -> None:
    found = [
        f"{FOLDER}/cli/test_nodes.py::test_one",
        f"{FOLDER}/cli/test_nodes.py::test_other",
        f"{FOLDER}/barrier/test_few.py::test_one",
        f"{FOLDER}/storage/test_many.py::test_one",
        f"{FOLDER}/storage/test_many.py::test_other",
        f"{FOLDER}/{LONGEST[1]}::test_one",
        f"{FOLDER}/{LONGEST[0]}::test_one",
    ]
    assert longest_first(found) == [6, 5, 3, 4, 2, 0, 1]


@pytest.mark.parametrize(("machines", "places"), SHARING.items())
def test_files_that_share_machines_go_to_one_worker(machines: str, places: tuple[str, ...]) -> None:
    files = [path for place in places for path in found_in(place)]
    assert len(files) > 1
    assert {shared_by(f"{FOLDER}/{name}::test_one") for name in files} == {machines}


def test_files_that_share_machines_count_as_one_file() -> None:
    assert longest_first(
        [f"{FOLDER}/{name}" for name in ("barrier/test_few.py::test_one", "hosts/a.py::t", "hosts/b.py::t")]
    ) == [1, 2, 0]


@pytest.mark.parametrize(
    ("fixture", "folder"), [("trio", "bootstrap"), ("booted_pair", "jobs"), ("process_pair", "jobs"), ("net", "hosts")]
)
def test_who_uses_shared_machines_is_named(fixture: str, folder: str) -> None:
    """For a file that is not named, another worker would make the machines once more."""
    files = [name for name in found_in(folder) if re.search(rf"\b{fixture}: ", (ROOT / FOLDER / name).read_text())]
    assert len({shared_by(f"{FOLDER}/{name}::test_one") for name in files}) == 1


def found_in(place: str) -> list[str]:
    """The file, or the files of the folder."""
    path = ROOT / FOLDER / place
    found = sorted(path.glob("test_*.py")) if path.is_dir() else [path]
    return [str(each.relative_to(ROOT / FOLDER)) for each in found]


def test_every_line_of_the_quick_table_names_a_test_that_is_there() -> None:
    lost = [name for name in QUICK if not is_there(name)]
    assert lost == []


def is_there(name: str) -> bool:
    """Whether the file exists and has the test, whatever its parameters."""
    file, _, test = name.partition("::")
    path = ROOT / FOLDER / file
    return path.exists() and f"def {test.partition('[')[0]}" in path.read_text()


def test_what_is_quick_is_a_file_or_a_test_of_it() -> None:
    assert is_quick("test_money.py::test_a_cap_refuses_with_both_numbers_before_anything_exists")
    assert is_quick("test_stand_in_engine.py::test_a_wrong_settings_file_is_refused_before_anything")
    assert not is_quick("test_stand_in_engine.py::test_too_many_requests_only_make_it_slower")
    assert not is_quick("bootstrap/test_torchrun.py::test_ranks_follow_the_first_rank_of_each_node"), (
        "it would install torch"
    )
