"""What is loaded on use stands in one table, and hides no cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # the fields of a row

import lazy_imports
import pytest
import tree_rules
from lazy_imports import LazyImport


def row(file: str = "p/a.py", **changed: Any) -> LazyImport:
    return LazyImport(**{"file": file, "modules": ("p.b",), "saves_ms": 20, "after": (), **changed})


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("importlib.import_module('p.b')", [(1, "'p.b'")]),
        ("def f():\n    return import_module(f(verb)).command", [(2, "f(verb)")]),
        ('x = __import__("p.b")', [(1, "'p.b'")]),
        ("import p.b\np.b.load('p.c')", []),
    ],
)
def test_a_module_that_is_loaded_by_its_name_is_seen(source: str, calls: list[tuple[int, str]]) -> None:
    assert lazy_imports.lazy_calls(source) == calls


@pytest.mark.parametrize(
    ("source", "rows", "breach"),
    [
        ("import_module('p.b')", [row()], None),
        ("import_module(f(x))", [row(written="f( x )")], None),
        ("import_module('p.b')", [], "p/a.py:1: loads 'p.b' on use"),
        ("import_module('p.c')\nimport_module('p.b')", [row()], "p/a.py:1: loads 'p.c' on use"),
        ("import_module('p.b')", [row("p/z.py"), row()], "p/z.py does not load 'p.b' on use"),
        ("import p.b", [row()], "p/a.py does not load 'p.b' on use"),
        ("import_module('p.b')", [row(saves_ms=0.4)], "'p.b' saves 0.4 ms, not 1"),
    ],
)
def test_each_has_its_row_which_is_worth_it(source: str, rows: list[LazyImport], breach: str | None) -> None:
    breaches = list(lazy_imports.lazy_breaches({"p/a.py": source}, rows))
    assert breaches == [] if breach is None else len(breaches) == 1 and breach in breaches[0]


@pytest.mark.parametrize("modules", [("p.b",), ("p.*",)])
def test_a_cycle_is_seen_where_one_of_its_files_is_loaded_on_use(tmp_path: Path, modules: tuple[str, ...]) -> None:
    texts = {"a": "import_module(which())", "b": "import p.c", "c": "import p.d", "d": "", "e": "import p.a"}
    (tmp_path / "p").mkdir()
    files = {}
    for name, text in texts.items():
        files[f"p.{name}"] = tmp_path / "p" / f"{name}.py"
        files[f"p.{name}"].write_text(text)
    rows = [row(modules=("p.b",), written="which()")]
    assert tree_rules.cycle_in(tree_rules.import_graph(files, rows, tmp_path)) == []
    files["p.d"].write_text("import p.a")
    assert tree_rules.cycle_in(tree_rules.import_graph(files, [], tmp_path)) == []
    rows = [row(modules=modules, written="which()")]
    cycle = tree_rules.cycle_in(tree_rules.import_graph(files, rows, tmp_path))
    assert "p.a" in cycle


def test_a_row_that_names_no_module_of_ours_is_told() -> None:
    files = {"p.a": Path("p/a.py"), "p.b": Path("p/b.py")}
    assert lazy_imports.loaded_on_use("p/a.py", [row(modules=("hashlib",))], files) == set()
    with pytest.raises(LookupError, match=r"p/a\.py: there is no module p\.gone"):
        lazy_imports.loaded_on_use("p/a.py", [row(modules=("p.gone",))], files)


def test_the_table_says_for_each_row_what_was_measured_and_over_what() -> None:
    assert all(each.after and each.modules and each.saves_ms > 0 for each in lazy_imports.table())
