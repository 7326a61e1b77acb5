"""The agent's modules as they travel in user-data: the same behaviour, without what only a reader here needs."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

BODY_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
INDENTATION = 4


@dataclass(frozen=True, kw_only=True, order=True)
class Cut:
    """What goes, from one (line, byte) to another, and what stands there instead."""

    start: tuple[int, int]
    end: tuple[int, int]
    instead: str = ""


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
    """The source without docstrings, lines of comment, blank lines, and annotations that nothing reads when it runs.

    User-data has 16 KiB for everything. The text is cut, not written anew from the tree: `ast.unparse` differs from
    one Python to the next, and the same agent must be the same bytes on everybody's computer. The agent has no text of
    several lines but docstrings; a test compares the statements.
    """
    tree = ast.parse(source)
    cuts = [*_docstrings(tree), *_annotations(tree)]
    lines = _cut(source, cuts).splitlines()
    kept = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return _without_unused_typing("".join(f"{_indented(line)}\n" for line in kept))


def _docstrings(tree: ast.Module) -> Iterator[Cut]:
    for owner in ast.walk(tree):
        if isinstance(owner, BODY_OWNERS) and ast.get_docstring(owner, clean=False) is not None:
            is_all = len(owner.body) == 1 and not isinstance(owner, ast.Module)
            yield _of(owner.body[0], instead="pass" if is_all else "")


def _annotations(tree: ast.Module) -> Iterator[Cut]:
    """Those of arguments, results and variables; a class keeps its own, since dataclasses read them."""
    of_classes = {each for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for each in owner.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            start = (node.lineno, node.col_offset + len(node.arg))
            yield Cut(start=start, end=_end(node.annotation))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            # Written by `ruff format`: `) -> X:` on one line.
            yield Cut(start=(node.returns.lineno, node.returns.col_offset - len(" -> ")), end=_end(node.returns))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and node not in of_classes:
            yield Cut(start=_end(node.target), end=_end(node.annotation))


def _cut(source: str, cuts: list[Cut]) -> str:
    """The source after all cuts; positions are in bytes, as the parser gives them."""
    lines = source.encode().splitlines()
    for cut in sorted(cuts, reverse=True):
        (first, begin), (last, end) = cut.start, cut.end
        joined = lines[first - 1][:begin] + cut.instead.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = [joined, *[b""] * (last - first)]
    return b"\n".join(lines).decode()


def _without_unused_typing(source: str) -> str:
    """Without imports from `typing` of names that stood only in annotations."""
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    cuts = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "typing":
            names = [alias.name for alias in statement.names if alias.name in used]
            cuts.append(_of(statement, instead=f"from typing import {', '.join(names)}" if names else ""))
    return "".join(f"{line}\n" for line in _cut(source, cuts).splitlines() if line)


def _of(node: ast.stmt, *, instead: str) -> Cut:
    return Cut(start=(node.lineno, node.col_offset), end=_end(node), instead=instead)


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Where a node ends; whatever was parsed from a text has an end."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _indented(line: str) -> str:
    """A line with one blank for each level."""
    text = line.lstrip(" ")
    return " " * ((len(line) - len(text)) // INDENTATION) + text.rstrip()
