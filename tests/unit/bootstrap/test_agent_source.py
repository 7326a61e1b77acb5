"""The agent's code as it travels: shorter, and the same statements."""

from __future__ import annotations

import ast
from importlib.resources import files

import pytest
from clusterctl_bootstrap.agent_source import agent_sources, agent_version, shortened

SOURCES = {
    entry.name: entry.read_text(encoding="utf-8")
    for entry in (files("clusterctl_bootstrap") / "node").iterdir()
    if entry.name.endswith(".py")
}


def without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for owner in ast.walk(tree):
        if isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(owner) is not None:
            owner.body[:1] = [] if len(owner.body) > 1 or isinstance(owner, ast.Module) else [ast.Pass()]
    return ast.dump(tree)


@pytest.mark.parametrize("name", SOURCES)
def test_the_statements_stay(name: str) -> None:
    assert ast.dump(ast.parse(agent_sources()[name])) == without_docstrings(SOURCES[name])


def test_what_only_a_reader_needs_goes() -> None:
    source = '"""Doc."""\nX = "# no comment"\n\n\nclass A:\n    """Doc\n    of two lines."""\n\n    # why\n    x = 1\n'
    assert shortened(source) == 'X = "# no comment"\nclass A:\n    x = 1\n'


def test_a_body_of_a_docstring_alone_stays_a_body() -> None:
    assert shortened('class A(Exception):\n    """Doc."""\n') == "class A(Exception):\n    pass\n"


def test_any_change_of_the_code_has_another_version() -> None:
    sources = agent_sources()
    changed = {**sources, "boot.py": sources["boot.py"] + "X = 1\n"}
    moved = {**sources, "moved.py": sources["boot.py"]}
    assert len({agent_version(each) for each in (sources, changed, moved)}) == 3
    assert len(agent_version(sources)) == 12
