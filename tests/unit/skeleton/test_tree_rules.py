"""The rules for the tree see what they are there to see."""

from __future__ import annotations

import pytest
import tree_rules


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from __future__ import annotations", []),
        ("import os, json", ["os", "json"]),
        ("def f():\n    from yaml import load", ["yaml"]),
        ("from . import x", ["."]),
    ],
)
def test_every_import_is_seen_wherever_it_stands(source: str, names: list[str]) -> None:
    assert tree_rules.imported_names(source) == names


def test_both_sides_of_the_size_rule_have_files() -> None:
    assert tree_rules.sources("product")
    assert tree_rules.sources("rehearsal")
