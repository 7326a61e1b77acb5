"""docs/security.md says who can do what: each of its lines names a test that proves it, and that test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PAGE = (TESTS.parent / "docs" / "security.md").read_text("utf-8")
SECTION = PAGE.split("## Who can do what\n", 1)[1].split("\n## ", 1)[0]
ROWS = [line for line in SECTION.splitlines() if line.startswith("|") and not re.match(r"\|-|.*\| test \|$", line)]
NAMED = sorted(set(re.findall(r"`([a-z_0-9/]+\.py)::(test_\w+)`", PAGE)))
PEOPLE = (
    "a user without sudo",
    "root on one node",
    "another user of your computer",
    "a reader of the account",
    "somebody who can set tags",
    "somebody who gets a bundle",
)


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_test_that_the_page_names_exists(file: str, test: str) -> None:
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS)
def test_every_line_names_its_test(row: str) -> None:
    assert re.search(r"\.py::test_\w+` \|$", row)


@pytest.mark.parametrize("person", PEOPLE)
def test_everybody_has_a_table(person: str) -> None:
    assert f"\n| {person} | | test |\n" in SECTION
