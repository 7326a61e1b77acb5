"""A Python module as it travels in user-data: the same behaviour, without what only readers of the source need.

The text is cut, not written anew from the syntax tree: `ast.unparse` differs from one Python to the next, and the same
agent must be the same bytes on everybody's computer. Texts of several lines other than docstrings stay as they are.
"""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from string import ascii_letters

BODY_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef)


@dataclass(frozen=True, kw_only=True, order=True)
class Cut:
    """A piece of the source that goes, from one (line, byte) to another, and what takes its place."""

    start: tuple[int, int]
    end: tuple[int, int]
    instead: str = ""

    def is_in(self, other: Cut) -> bool:
        """Whether the other cut contains this one."""
        return other.start <= self.start and self.end <= other.end


def shortened(source: str) -> str:
    """The source without what only a reader needs, and with short names for variables inside functions.

    Docstrings, comments and annotations go, and methods that only promise that a subclass has them.

    Raises ValueError for f-strings: before Python 3.12 the parser does not say where the names in them are.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            raise ValueError(f"line {node.lineno}: an f-string, which cannot be shortened")
    promised = list(_promised_methods(tree))
    inside = [cut for cut in chain(_docstrings(tree), _annotations(tree)) if not any(map(cut.is_in, promised))]
    cut = _cut(source, [*promised, *inside])
    return _tight(_renamed(_without_unused_typing(cut)))


def _docstrings(tree: ast.Module) -> Iterator[Cut]:
    for owner in ast.walk(tree):
        if isinstance(owner, BODY_OWNERS):
            for statement in owner.body:
                if _is_text(statement):
                    is_all = len(owner.body) == 1 and not isinstance(owner, ast.Module)
                    yield _cut_of(statement, instead="pass" if is_all else "")


def _promised_methods(tree: ast.Module) -> Iterator[Cut]:
    """Cuts of the methods that raise NotImplementedError and do nothing else: subclasses define them."""
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            promised = [each for each in owner.body if _is_promise(each)]
            rest = [each for each in owner.body if each not in promised and not _is_text(each)]
            for number, method in enumerate(promised):
                yield _cut_of(method, instead="pass" if number == 0 and not rest else "")


def _is_promise(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.FunctionDef) or statement.decorator_list:
        return False
    done = [each for each in statement.body if not _is_text(each)]
    return len(done) == 1 and isinstance(done[0], ast.Raise) and ast.unparse(done[0]) == "raise NotImplementedError"


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _annotations(tree: ast.Module) -> Iterator[Cut]:
    """Cuts of the annotations of arguments, results and variables; a class keeps its own, which dataclasses read."""
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


def _without_unused_typing(source: str) -> str:
    """The source without imports from `typing` of names that stood only in annotations."""
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    cuts = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "typing":
            names = [alias.name for alias in statement.names if alias.name in used]
            cuts.append(_cut_of(statement, instead=f"from typing import {', '.join(names)}" if names else ""))
    return _cut(source, cuts)


def _renamed(source: str) -> str:
    """The source with a short name for each variable of a function; parameters keep theirs: callers may use them."""
    tree = ast.parse(source)
    cuts: list[Cut] = []
    for function in _outermost_functions(tree):
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        kept = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} | _names_of_module(tree)
        own = dict.fromkeys(node.id for node in names if isinstance(node.ctx, ast.Store) and node.id not in kept)
        letters = _short_names(kept | {node.id for node in names})
        short = {name: next(letters) for name in own if len(name) > 1}
        cuts += [
            Cut(start=(node.lineno, node.col_offset), end=_end(node), instead=short[node.id])
            for node in names
            if node.id in short
        ]
    return _cut(source, cuts)


def _outermost_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for statement in tree.body:
        members = statement.body if isinstance(statement, ast.ClassDef) else [statement]
        yield from (member for member in members if isinstance(member, ast.FunctionDef))


def _names_of_module(tree: ast.Module) -> set[str]:
    """All that is bound outside functions, and in functions by other means than assignment: none of it is renamed."""
    found = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ExceptHandler):
            found.add(node.name or "")
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    assigned = [
        node for statement in tree.body if not isinstance(statement, BODY_OWNERS) for node in ast.walk(statement)
    ]
    return found | {node.id for node in assigned if isinstance(node, ast.Name)}


def _short_names(taken: set[str]) -> Iterator[str]:
    several = ("".join(pair) for pair in product(ascii_letters, repeat=2))
    return (name for name in chain(ascii_letters, several) if name not in taken and not keyword.iskeyword(name))


def _tight(source: str) -> str:
    """The source with each statement on one line, one blank per level of indentation, and others only between words."""
    lines, words, level = [], [""], 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            lines.append(" " * level + "".join(words) + "\n")
            words = [""]
        elif token.type in (tokenize.INDENT, tokenize.DEDENT):
            level += 1 if token.type == tokenize.INDENT else -1
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER):
            word = _requoted(token.string) if token.type == tokenize.STRING else token.string
            touches = _is_of_a_word(words[-1][-1:]) and (_is_of_a_word(word[0]) or word[0] in "\"'")
            words += [" ", word] if touches else [word]
    return "".join(lines)


def _requoted(text: str) -> str:
    """The text in 'single' quotes if that changes nothing: the cloud-config needs two characters for a double one."""
    inside = text[1:-1]
    return f"'{inside}'" if text[0] == '"' and not set(inside) & set("\"'\\") else text


def _is_of_a_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _cut(source: str, cuts: list[Cut]) -> str:
    """The source after all cuts; positions are in bytes, as the parser gives them."""
    lines = source.encode().splitlines()
    for cut in sorted(cuts, reverse=True):
        (first, begin), (last, end) = cut.start, cut.end
        joined = lines[first - 1][:begin] + cut.instead.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = [joined, *[b""] * (last - first)]
    return b"\n".join([*lines, b""]).decode()


def _cut_of(node: ast.stmt, *, instead: str) -> Cut:
    return Cut(start=(node.lineno, node.col_offset), end=_end(node), instead=instead)


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Where a node ends; whatever was parsed from a text has an end."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
