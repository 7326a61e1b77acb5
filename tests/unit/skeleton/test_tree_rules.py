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


def test_scripts_for_a_node_count_too_and_data_does_not() -> None:
    names = {path.name for path in tree_rules.counted("product")}
    assert {"guard.sh", "clusterctl-node", "planner.py"} <= names
    assert "prices.csv" not in names
