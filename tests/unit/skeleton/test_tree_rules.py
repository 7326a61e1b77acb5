"""The rules for the tree see what they are there to see."""

from __future__ import annotations

import ast
from pathlib import Path

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


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def __getattr__(name):\n    import importlib", []),
        ("import os\ndef f():\n    import json", ["os"]),
        ("if True:\n    import os", ["os"]),
        ("class A:\n    import os", ["os"]),
    ],
)
def test_what_a_function_imports_is_not_loaded_with_its_package(source: str, names: list[str]) -> None:
    assert tree_rules.names_imported_at_load(source) == names


def test_both_sides_of_the_size_rule_have_files() -> None:
    assert tree_rules.sources("product")
    assert tree_rules.sources("rehearsal")


def test_scripts_for_a_node_count_too_and_data_does_not() -> None:
    names = {path.name for path in tree_rules.counted("product")}
    assert {"guard.sh", "clusterctl-node", "planner.py"} <= names
    assert "prices.csv" not in names


def test_files_that_import_each_other_are_seen(tmp_path: Path) -> None:
    texts = {
        "a": "from p.b import x",
        "b": "from p import c",
        "c": "def late():\n    import p.a",
        "d": "import p.a",
    }
    files = {}
    for name, text in texts.items():
        files[f"p.{name}"] = tmp_path / f"{name}.py"
        files[f"p.{name}"].write_text(text)
    graph = {name: tree_rules.imported_files(path, files) for name, path in files.items()}
    assert graph == {"p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"p.a"}, "p.d": {"p.a"}}
    assert sorted(tree_rules.cycle_in(graph)) == ["p.a", "p.a", "p.b", "p.c"]
    assert tree_rules.cycle_in({"p.d": {"p.a"}, "p.a": set()}) == []


@pytest.mark.parametrize(
    ("decorator", "annotation", "fields"),
    [
        ("dataclass(frozen=True, kw_only=True)", "list[str]", ["x"]),
        ("dataclass(frozen=True)", "dict", ["x"]),
        ("dataclass(frozen=True)", "None | list[str]", ["x"]),
        ("dataclass(frozen=True)", "Optional[Dict[str, int]]", ["x"]),
        ("dataclass(frozen=True)", "tuple[list[str], ...] | None", []),
        ("dataclass(frozen=True)", "Mapping[str, int]", []),
        ("dataclass(frozen=True)", "MutableMapping[str, int]", ["x"]),
        ("dataclass(frozen=True)", "MutableSequence[int]", ["x"]),
        ("dataclass(frozen=True)", "MutableSet[int] | None", ["x"]),
        ("dataclass(frozen=True)", "OrderedDict[str, int]", ["x"]),
        ("dataclass(frozen=True)", "collections.OrderedDict[str, int]", ["x"]),
        ("dataclass(frozen=True)", "typing.Optional[typing.Deque[int]]", ["x"]),
        ("dataclass(kw_only=True)", "list[str]", []),
    ],
)
def test_a_frozen_class_has_no_field_that_anybody_can_change(
    decorator: str, annotation: str, fields: list[str]
) -> None:
    node = ast.parse(f"@{decorator}\nclass A:\n    x: {annotation}").body[0]
    assert isinstance(node, ast.ClassDef)
    assert list(tree_rules.changeable_fields(node)) == fields


@pytest.mark.parametrize(
    ("base", "annotation", "fields"),
    [
        ("NamedTuple", "Dict[str, int]", ["x"]),
        ("typing.NamedTuple", "list[str]", ["x"]),
        ("NamedTuple", "Mapping[str, Tuple[int, ...]]", []),
        ("Protocol", "list[str]", []),
    ],
)
def test_nor_has_a_named_tuple(base: str, annotation: str, fields: list[str]) -> None:
    node = ast.parse(f"class A({base}):\n    x: {annotation}").body[0]
    assert isinstance(node, ast.ClassDef)
    assert list(tree_rules.changeable_fields(node)) == fields


def test_a_docstring_does_not_make_a_function_long() -> None:
    node = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    x = 1\n    return x').body[0]
    assert isinstance(node, ast.FunctionDef)
    assert tree_rules.function_lines(node) == 3


def test_a_docstring_is_read_wherever_it_stands() -> None:
    source = '"""A."""\nX = 1\n"""B."""\nclass C:\n    """D."""\n    async def f(self):\n        """E."""\n'
    texts = [text for node in ast.walk(ast.parse(source)) for _, text in tree_rules.docstrings(node)]
    assert texts == ["A.", "B.", "D.", "E."]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("one = 1", [(1, "one")]),
        ("def f(one): ...", [(1, "one")]),
        ("told = said(1)", [(1, "told")]),
        ("f = lambda *, one: 0", [(1, "one")]),
        ("x = [\n one\n for one, row in rows]", [(3, "one")]),
        ("try: ...\nexcept OSError as one: ...", [(2, "one")]),
        ("match x:\n  case [one, *truth]: ...", [(2, "one"), (2, "truth")]),
        ("if (truth := f()): ...", [(1, "truth")]),
        ("class Desk:\n  async def no_way(self): ...", [(1, "Desk"), (2, "no_way")]),
        ("def one(): ...\nx = 'one truth'\nx.one = one_more = rows.one()", []),
    ],
)
def test_a_name_that_is_a_riddle_is_seen_where_it_is_given(source: str, found: list[tuple[int, str]]) -> None:
    assert tree_rules.riddle_names(source) == found


def test_names_are_looked_at_wherever_python_is_written() -> None:
    assert all(any((tree_rules.CHECKOUT / place).rglob("*.py")) for place in tree_rules.PLACES_OF_NAMES)


BASES = {
    "class Clients(Protocol):\n  def ec2(self): 'EC2.'": False,
    "class Outside:\n  def run(self):\n    'Runs.'\n    raise NotImplementedError": False,
    "class Facts:\n  name: str": False,
    "class Outside:\n  def run(self):\n    return 0": True,
    "class Engine(Outside):\n  def __init__(self):\n    self.x = 1": True,
}


@pytest.mark.parametrize(("base", "is_reported"), BASES.items())
def test_a_fake_may_inherit_what_a_product_class_declares_and_nothing_that_it_does(
    base: str, *, is_reported: bool
) -> None:
    (declared,) = (node for node in ast.walk(ast.parse(base)) if isinstance(node, ast.ClassDef))
    asked = []

    def defined(module: str, name: str) -> ast.ClassDef:
        asked.append((module, name))
        return declared

    fake = "from clusterctl.x import Base as B\nclass Own: ...\ndef f():\n  class Fake(Own, B): ..."
    found = list(tree_rules.product_bases(fake, defined))
    assert asked == [("clusterctl.x", "Base")]
    assert found == ([(4, "Fake", "B")] if is_reported else [])


@pytest.mark.parametrize(
    ("imported", "base"),
    [
        ("import clusterctl.engine.call", "clusterctl.engine.call.PulumiEngine"),
        ("import clusterctl.engine.call as c", "c.PulumiEngine"),
        ("from clusterctl.engine import call", "call.PulumiEngine"),
    ],
)
def test_a_base_is_found_behind_the_name_of_its_module(imported: str, base: str) -> None:
    source = f"{imported}\nclass Fake({base}): ..."
    assert list(tree_rules.product_bases(source, tree_rules.defined_class)) == [(2, "Fake", base)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from clusterctl.cloud.clients import AwsClients\nx = AwsClients(region='r')", [(2, "AwsClients")]),
        ("from clusterctl.cloud.clients import AwsClients as A\nx = A.at(None)", [(2, "A")]),
        ("from clusterctl.cloud import clients\nx = clients.AwsClients()", [(2, "clients.AwsClients")]),
        ("from clusterctl.cloud.clients import AwsClients\ndef f(x: AwsClients) -> None: ...", []),
        ("from clusterctl_infra.errors import CloudError\nraise CloudError('x', code='y')", []),
        ("from clusterctl.engine.state import StackState\nx = StackState(resources=())", []),
        ("from clusterctl.cloud.clients import configured_region\nx = configured_region()", []),
    ],
)
def test_a_fake_makes_values_alone_of_what_the_product_has(source: str, found: list[tuple[int, str]]) -> None:
    assert list(tree_rules.product_objects(source, tree_rules.defined_class)) == found


def test_the_class_behind_an_import_is_found_in_our_packages_alone() -> None:
    assert tree_rules.defined_class("clusterctl.engine.call", "PulumiEngine") is not None
    assert tree_rules.defined_class("clusterctl.engine.call", "Nobody") is None
    assert tree_rules.defined_class("pathlib", "Path") is None
