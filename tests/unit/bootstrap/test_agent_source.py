"""The agent's code as it travels: shorter, and it does the same."""

from __future__ import annotations

import ast
import typing
from importlib.resources import files
from typing import Any  # what a node of a tree becomes

import pytest
from clusterctl_bootstrap.agent_source import agent_sources, agent_version, shortened

SOURCES = {
    entry.name: entry.read_text(encoding="utf-8")
    for entry in (files("clusterctl_bootstrap") / "node").iterdir()
    if entry.name.endswith(".py")
}


class Unread(ast.NodeTransformer):
    """A tree without docstrings, annotations outside classes, and names from `typing` that then have no use."""

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body[:1] = [] if len(node.body) > 1 or isinstance(node, ast.Module) else [ast.Pass()]
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.Module | ast.FunctionDef | ast.If | ast.For | ast.With | ast.Try):
            node.body = [plain(each) for each in node.body]
        return node


def plain(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.Assign(targets=[statement.target], value=statement.value)
    return statement


def statements(source: str) -> list[str]:
    """What is left of each statement of a module, but for imports from `typing`."""
    tree = Unread().visit(ast.parse(source))
    return [ast.dump(each) for each in tree.body if not (isinstance(each, ast.ImportFrom) and each.module == "typing")]


@pytest.mark.parametrize("name", SOURCES)
def test_the_statements_stay(name: str) -> None:
    assert statements(agent_sources()[name]) == statements(SOURCES[name])


@pytest.mark.parametrize("name", sorted({*SOURCES} - {"__main__.py"}))
def test_what_travels_still_has_every_name_that_it_uses(name: str) -> None:
    module = f"clusterctl_bootstrap.node.{name.removesuffix('.py')}"
    found: dict[str, Any] = {"__name__": module}
    exec(compile(agent_sources()[name], name, "exec"), found)
    used = {node.id for node in ast.walk(ast.parse(agent_sources()[name])) if isinstance(node, ast.Name)}
    assert [each for each in typing.__all__ if each in used and each not in found] == []


SHORTENED = {
    "what only a reader needs": (
        '"""Doc."""\nX = "# no comment"\n\n\nclass A:\n    """Doc\n    of two lines."""\n\n    # why\n    x = 1\n',
        'X = "# no comment"\nclass A:\n x = 1\n',
    ),
    "a docstring that is all": (
        'class A(Exception):\n    """Doc."""\n',
        "class A(Exception):\n pass\n",
    ),
    "annotations": (
        (
            "from typing import Any, List\n\n\n"
            "def f(a: int, *b: str, c: List[str] = []) -> Any:\n    d: int = a\n    return d\n"
        ),
        "def f(a, *b, c = []):\n d = a\n return d\n",
    ),
    "an annotation over several lines": (
        "def f(\n    a: Dict[\n        str, int\n    ],\n) -> None:\n    return\n",
        "def f(\n a,\n):\n return\n",
    ),
    "annotations of a class, which dataclasses read": (
        "from typing import Any, List\n\n\nclass A:\n    a: List[str]\n    b: int = 1\n",
        "from typing import List\nclass A:\n a: List[str]\n b: int = 1\n",
    ),
    "bytes that are more than their letters": (
        'def f(a: str = "ü", b: str = "x") -> str:\n    return a\n',
        'def f(a = "ü", b = "x"):\n return a\n',
    ),
}


@pytest.mark.parametrize(("source", "expected"), SHORTENED.values(), ids=SHORTENED)
def test_what_nothing_reads_at_run_time_goes(source: str, expected: str) -> None:
    assert shortened(source) == expected


def test_any_change_of_the_code_has_another_version() -> None:
    sources = agent_sources()
    changed = {**sources, "boot.py": sources["boot.py"] + "X = 1\n"}
    moved = {**sources, "moved.py": sources["boot.py"]}
    assert len({agent_version(each) for each in (sources, changed, moved)}) == 3
    assert len(agent_version(sources)) == 12
