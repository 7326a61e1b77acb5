"""The agent's code as it travels: shorter, and it does the same."""

from __future__ import annotations

import ast
import importlib
import sys
import typing
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any  # what a node of a tree becomes

import pytest
from clusterctl_bootstrap.agent_source import agent_sources, agent_version, later_sources
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.shortening import shortened

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, pushed, routed

SOURCES = {
    entry.name: entry.read_text(encoding="utf-8")
    for entry in (files("clusterctl_bootstrap") / "node").iterdir()
    if entry.name.endswith(".py")
}
TRAVELLING = {**agent_sources(), **later_sources()}
PACKAGE = "agent_as_it_travels"


class Unread(ast.NodeTransformer):
    """Removes docstrings, methods that only raise NotImplementedError, and annotations outside classes from a tree."""

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            left = [each for each in node.body if not is_text(each) and not is_promise(each)]
            node.body = left or ([] if isinstance(node, ast.Module) else [ast.Pass()])
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.Module | ast.FunctionDef | ast.If | ast.For | ast.With | ast.Try):
            node.body = [plain(each) for each in node.body]
        return node


def is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_promise(statement: ast.stmt) -> bool:
    body = statement.body if isinstance(statement, ast.FunctionDef) else []
    return len(body) == 1 and isinstance(body[0], ast.Raise) and ast.unparse(body[0]) == "raise NotImplementedError"


def plain(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.Assign(targets=[statement.target], value=statement.value)
    return statement


def statements(source: str) -> list[ast.stmt]:
    """What is left of each statement of a module, but for imports from `typing`."""
    tree = Unread().visit(ast.parse(source))
    return [each for each in tree.body if not (isinstance(each, ast.ImportFrom) and each.module == "typing")]


def functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    for statement in body:
        members = statement.body if isinstance(statement, ast.ClassDef) else [statement]
        yield from (member for member in members if isinstance(member, ast.FunctionDef))


def without_names(body: list[ast.stmt]) -> list[str]:
    """The statements with a dot for each name inside functions."""
    for function in functions(body):
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                node.id = "."
    return [ast.dump(each) for each in body]


@pytest.mark.parametrize("name", SOURCES)
def test_the_statements_stay(name: str) -> None:
    assert without_names(statements(TRAVELLING[name])) == without_names(statements(SOURCES[name]))


@pytest.mark.parametrize("name", SOURCES)
def test_each_variable_has_one_short_name_and_no_other_has_it(name: str) -> None:
    pairs = zip(functions(statements(SOURCES[name])), functions(statements(TRAVELLING[name])), strict=True)
    for before, after in pairs:
        old, new = ([node.id for node in ast.walk(each) if isinstance(node, ast.Name)] for each in (before, after))
        renamed = set(zip(old, new, strict=True))
        assert len(renamed) == len({was for was, _ in renamed}) == len({now for _, now in renamed}), before.name


@pytest.fixture
def travelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the agent as it travels, importable under a name of its own."""
    folder = tmp_path / "agent" / PACKAGE
    folder.mkdir(parents=True)
    for name, text in TRAVELLING.items():
        (folder / name).write_text(text.replace("clusterctl_bootstrap.node", PACKAGE), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield tmp_path
    for name in [each for each in sys.modules if each.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def written(root: Path) -> dict[str, str]:
    """The files of a node, but for status.json, which has times in it."""
    found = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".log"]
    return {str(path.relative_to(root)): path.read_text() for path in found if path.name != "status.json"}


def test_what_travels_makes_the_same_node(travelled: Path) -> None:
    roots = [routed(born(travelled / name, with_systemd=True)) for name in ("here", "there")]
    shipped = [agent_module(name) for name in ("boot", "apply")]
    assert boot(roots[0], FakeOutside()) == shipped[0].boot(roots[1], FakeOutside()) == 0
    assert written(roots[0]) == written(roots[1])
    assert shipped[1].apply(roots[1], pushed(), FakeOutside()) == {"ok": True, "generation": 3}
    assert shipped[1].apply(roots[1], pushed(nodes=0), FakeOutside())["ok"] is False


@pytest.mark.parametrize("lost", ["", "def attend(root, outside:\n"])
def test_a_machine_becomes_a_node_though_its_disk_lost_what_came_with_the_membership(
    travelled: Path, lost: str
) -> None:
    (travelled / "agent" / PACKAGE / "later.py").write_text(lost)
    root = routed(born(travelled / "torn", with_systemd=True))
    assert agent_module("__main__").main(["boot"], root, FakeOutside()) == 0


def agent_module(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{name}")


@pytest.mark.parametrize("name", sorted({*SOURCES} - {"__main__.py"}))
def test_what_travels_still_imports_every_name_of_typing_that_it_uses(name: str) -> None:
    module = f"clusterctl_bootstrap.node.{name.removesuffix('.py')}"
    found: dict[str, Any] = {"__name__": module}
    exec(compile(TRAVELLING[name], name, "exec"), found)
    used = {node.id for node in ast.walk(ast.parse(TRAVELLING[name])) if isinstance(node, ast.Name)}
    assert [each for each in typing.__all__ if each in used and each not in found] == []


SHORTENED = {
    "what only a reader needs": (
        '"""Doc."""\nX = "# no comment"\n\n\nclass A:\n    """Doc\n    of two lines."""\n\n    # why\n    x = 1\n',
        "X='# no comment'\nclass A:\n x=1\n",
    ),
    "a docstring that is all": (
        'class A(Exception):\n    """Doc."""\n',
        "class A(Exception):\n pass\n",
    ),
    "methods that a class only promises": (
        (
            'class A:\n    def f(self) -> int:\n        """Doc."""\n        raise NotImplementedError\n\n'
            "    def g(self) -> int:\n        raise NotImplementedError\n\n\n"
            "class B(A):\n    def f(self) -> int:\n        return 1\n\n    def g(self) -> int:\n"
            "        raise NotImplementedError\n"
        ),
        "class A:\n pass\nclass B(A):\n def f(self):\n  return 1\n",
    ),
    "annotations": (
        (
            "from typing import Any, List\n\n\n"
            "def f(a: int, *b: str, c: List[str] = []) -> Any:\n    d: int = a\n    return d\n"
        ),
        "def f(a,*b,c=[]):\n d=a\n return d\n",
    ),
    "names of variables in functions": (
        "def f(x):\n    total = [each for each in x]\n    return total\n",
        "def f(x):\n a=[b for b in x]\n return a\n",
    ),
    "no name that means something else there": (
        "import json\n\n\ndef f(a, log):\n    json = [log for log in a]\n    id = got = json\n    return id, got\n",
        "import json\ndef f(a,log):\n json=[log for log in a]\n id=b=json\n return id,b\n",
    ),
    "no name that an error is caught under": (
        "def f(x):\n    try:\n        got = x()\n    except OSError as e:\n        got = str(e)\n    return got\n",
        "def f(x):\n try:\n  a=x()\n except OSError as e:\n  a=str(e)\n return a\n",
    ),
    "blanks, but for those between words": (
        "def f(x):\n    if x:  # why\n        return not (\n            x or 'a' in 'b'\n        )\n\n\nf(-1)\n",
        "def f(x):\n if x:\n  return not(x or 'a'in 'b')\nf(-1)\n",
    ),
    "a text behind a constant": ('X = 1\n"""Why."""\n', "X=1\n"),
    "an annotation over several lines": (
        "def f(\n    a: Dict[\n        str, int\n    ],\n) -> None:\n    return\n",
        "def f(a,):\n return\n",
    ),
    "annotations of a class, which dataclasses read": (
        "from typing import Any, List\n\n\nclass A:\n    a: List[str]\n    b: int = 1\n",
        "from typing import List\nclass A:\n a:List[str]\n b:int=1\n",
    ),
    "text behind a letter of two bytes": (
        'def f(a: str = "ü", b: str = "x") -> str:\n    return a\n',
        "def f(a='ü',b='x'):\n return a\n",
    ),
    "quotes, where a string has neither kind nor a backslash": (
        'A = ("a", b"b", "c\'s", "d\\n", \'"e"\') + ("f", "g")\n',
        "A=('a',b\"b\",\"c's\",\"d\\n\",'\"e\"')+('f','g')\n",
    ),
}


@pytest.mark.parametrize(("source", "expected"), SHORTENED.values(), ids=SHORTENED)
def test_what_nothing_reads_at_run_time_goes(source: str, expected: str) -> None:
    assert shortened(source) == expected


def test_an_f_string_is_refused() -> None:
    """Before Python 3.12 the parser does not say where the names in it are."""
    with pytest.raises(ValueError, match="line 2: an f-string"):
        shortened("def f(x):\n    return f'{x}'\n")


def test_any_change_of_the_code_has_another_version() -> None:
    sources = agent_sources()
    changed = {**sources, "boot.py": sources["boot.py"] + "X = 1\n"}
    moved = {**sources, "moved.py": sources["boot.py"]}
    assert len({agent_version(each) for each in (sources, changed, moved)}) == 3
    assert len(agent_version(sources)) == 12


def test_each_module_travels_once_at_birth_or_later() -> None:
    assert "barrier.py" in later_sources()
    assert sorted([*agent_sources(), *later_sources()]) == sorted(SOURCES)
