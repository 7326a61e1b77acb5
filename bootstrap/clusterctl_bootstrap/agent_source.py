"""The agent's modules as they travel in user-data: the same statements, without what only a reader here needs."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

BODY_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def agent_sources() -> Mapping[str, str]:
    """File name → text of each module, sorted by name; read once, 256 nodes carry the same."""
    folder = files("clusterctl_bootstrap") / "node"
    modules = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".py")), key=lambda entry: entry.name)
    return {entry.name: shortened(entry.read_text(encoding="utf-8")) for entry in modules}


def agent_version(sources: Mapping[str, str]) -> str:
    """Twelve hex digits that name the agent's code."""
    return hashlib.sha256("\0".join([*sources, *sources.values()]).encode()).hexdigest()[:12]


def shortened(source: str) -> str:
    """The source without docstrings, lines of comment and blank lines; user-data has 16 KiB for everything.

    The agent has no text of several lines but docstrings; a test compares the statements.
    """
    lines = source.splitlines()
    for docstring, is_all in _docstrings(ast.parse(source)):
        lines[docstring.lineno - 1] = " " * docstring.col_offset + "pass" if is_all else ""
        for row in range(docstring.lineno, docstring.end_lineno or docstring.lineno):
            lines[row] = ""
    return "".join(f"{line}\n" for line in lines if line and not line.lstrip().startswith("#"))


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """Each docstring, and whether it is all that its class or function has."""
    for owner in ast.walk(tree):
        if not isinstance(owner, BODY_OWNERS) or ast.get_docstring(owner, clean=False) is None:
            continue
        yield owner.body[0], len(owner.body) == 1 and not isinstance(owner, ast.Module)
