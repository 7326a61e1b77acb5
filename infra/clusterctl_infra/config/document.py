"""A YAML file as a tree whose leaves are texts, with line numbers.

Every scalar keeps the text that the person wrote, so none of YAML 1.1's surprises happens (`no` is a boolean there,
`010` is 8, `12:30:00` is 45000): the model, which knows what a field is, reads the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

Path = tuple[str | int, ...]
Tree = None | str | list["Tree"] | dict[str, "Tree"]
NODE_LIMIT = 20_000
"""The most YAML nodes that are read, with aliases followed: a file that unfolds to more is an attack or an accident."""
DEPTH_LIMIT = 40
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_STANDARD_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "timestamp", "value")
)


@dataclass(frozen=True, kw_only=True)
class DocumentProblem:
    """Something in the file that is not read; the line counts from 1."""

    line: int | None
    path: Path
    message: str


@dataclass(frozen=True, kw_only=True)
class Document:
    """What the file says, in which lines, and which parts of it were not read."""

    tree: Tree
    lines: Mapping[Path, int]
    """Path → line of its key, or of the list's entry."""
    problems: tuple[DocumentProblem, ...]

    def line_of(self, path: Path) -> int | None:
        """The line of the path, or of the innermost part of the file around it; None where the file has neither."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def read_document(text: str) -> Document:
    """The document in `text`; never raises on any text."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        return _unreadable(syntax_message(e), None if e.problem_mark is None else e.problem_mark.line + 1)
    except yaml.reader.ReaderError as e:
        line = text.count("\n", 0, e.position) + 1 if isinstance(e.position, int) else None
        return _unreadable(f"a character that YAML does not allow (code {e.character!r})", line)
    except yaml.YAMLError as e:
        return _unreadable(f"not YAML: {e}", None)
    except RecursionError:
        return _unreadable("nested too deeply to be read", None)
    except ValueError as e:  # e.g. a %YAML directive or an escape with an impossible number
        return _unreadable(f"not YAML: {e}", None)
    if root is None:
        return Document(tree=None, lines={}, problems=())
    reader = _Reader()
    tree = reader.read(root, ())
    return Document(tree=tree, lines=reader.lines, problems=tuple(reader.problems))


def _unreadable(message: str, line: int | None) -> Document:
    return Document(tree=None, lines={}, problems=(DocumentProblem(line=line, path=(), message=message),))


def syntax_message(e: yaml.MarkedYAMLError) -> str:
    """What is wrong, on one line and without the place."""
    parts = [part for part in (e.context, e.problem) if part]
    return "not YAML: " + ", ".join(parts)


@dataclass(kw_only=True)
class _Reader:
    """Unfolds the node graph; collects problems instead of raising."""

    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[DocumentProblem] = field(default_factory=list)
    visits: int = 0

    def read(self, node: Node, path: Path) -> Tree:
        self.visits += 1
        if self.visits > NODE_LIMIT or len(path) > DEPTH_LIMIT:
            if not any("unfolds" in each.message for each in self.problems):
                self._problem(node, (), "unfolds to too much (an alias that contains itself?)")
            return None
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return self._sequence(node, path)
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> Tree:
        self._expect_tag(node, path, "tag:yaml.org,2002:map")
        found: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, path, "a key is a word, not a list or mapping")
                continue
            key = key_node.value
            if key_node.tag == "tag:yaml.org,2002:merge":
                self._problem(key_node, (*path, key), "merge keys are not read; write the keys out")
                continue
            if key in found:
                first = self.lines[*path, key]
                self._problem(key_node, (*path, key), f"written twice (first in line {first})")
                continue
            self.lines[*path, key] = key_node.start_mark.line + 1
            found[key] = self.read(value_node, (*path, key))
        return found

    def _sequence(self, node: SequenceNode, path: Path) -> Tree:
        self._expect_tag(node, path, "tag:yaml.org,2002:seq")
        entries: list[Tree] = []
        for index, entry in enumerate(node.value):
            self.lines[*path, index] = entry.start_mark.line + 1
            entries.append(self.read(entry, (*path, index)))
        return entries

    def _scalar(self, node: Node, path: Path) -> Tree:
        if node.tag not in _STANDARD_TAGS:
            self._problem(node, path, f"tags are not read ({node.tag}); write a plain value")
        if isinstance(node, ScalarNode) and node.style is None and node.value in _NULLS:
            return None
        return str(node.value)

    def _expect_tag(self, node: Node, path: Path, tag: str) -> None:
        if node.tag != tag:
            self._problem(node, path, f"tags are not read ({node.tag}); write a plain value")

    def _problem(self, node: Node, path: Path, message: str) -> None:
        self.problems.append(DocumentProblem(line=node.start_mark.line + 1, path=path, message=message))
