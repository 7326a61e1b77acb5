"""Renders a workflow's file, a Jinja template, with its `default-values`, and maps each rendered line to its source.

Pure. The order is OSMO's (its source at 1da31e1, 2026-11): the top-level `default-values` are taken out, tokens are
hidden, Jinja renders the rest, tokens come back. Only then is the YAML parsed, and after that the files that it names
are read, so Jinja never sees those files.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast  # values of a person's file

import yaml
from clusterctl_infra.nearest import did_you_mean
from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from clusterctl.workflows import tokens

VALUES_KEY = "default-values"
TOP_KEY = re.compile(r"([A-Za-z_][\w-]*)\s*:")
NAME = re.compile(r"[A-Za-z_]\w*")
MOST_RENDERED = 4 * 1024 * 1024
"""Characters: four thousand for each of a thousand tasks."""
MOST_MEMORY_MIB = 1024
"""The limit for the process that renders, which bounded_rendering sets."""
MOST_REPEATED = 100_000
"""The longest text or list that `*` may make, and the largest base of `**`."""
MARK_OPEN, MARK_CLOSE = "\ue012", "\ue013"
MARK = re.compile(f"{MARK_OPEN}(\\d+){MARK_CLOSE}")
PRIVATE = re.compile("[\ue010-\ue013]")
RAW = re.compile(r"\{%-?\s*raw\s*-?%\}.*?\{%-?\s*endraw\s*-?%\}|\{#.*?#\}", re.DOTALL)
"""Parts that Jinja copies as they are (raw blocks), or leaves out (comments)."""
TEMPLATE_FILE = "<template>"
"""The file name that Jinja gives, in the frames of an exception, to a template without a file."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """What Jinja made of the file, with its tokens unresolved."""

    text: str
    lines: tuple[int, ...] = ()
    """For each line of the text, the line of the file that it comes from; empty if that is not known."""

    def line_of(self, line: int) -> int | None:
        """The line of the file that this line of the text comes from."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None


class TemplateProblems(Exception):
    """What is wrong with a template: `problems` has (line in the file, sentence)."""

    def __init__(self, problems: Iterable[tuple[int | None, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(sentence for _, sentence in self.problems))


class _Sandbox(SandboxedEnvironment):
    """Jinja's own sandbox, in which `*` and `**` cannot fill the memory with a text, a list or a number either."""

    intercepted_binops = frozenset({"*", "**", "%"})
    """Jinja does not compute intercepted operators when it compiles a template, where an error would have no line."""

    def call_binop(self, context: object, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and (abs(left) > MOST_REPEATED or abs(right) > 64):
            raise SecurityError(f"{left} ** {right} is too large")
        sized, count = (left, right) if hasattr(left, "__len__") else (right, left)
        if operator == "*" and hasattr(sized, "__len__") and len(sized) * abs(count) > MOST_REPEATED:
            raise SecurityError(f"a text or a list of {len(sized) * abs(count)} parts is too large")
        return super().call_binop(context, operator, left, right)  # type: ignore[arg-type]


def render(text: str, given: Mapping[str, Any]) -> Rendered:
    """Renders the file with its default values, or with those of `given` in their place. Raises TemplateProblems.

    It limits neither time nor memory: see bounded_rendering.
    """
    try:
        return _render(text, given)
    except (RecursionError, MemoryError, SyntaxError, TemplateError, ValueError) as e:
        # For example, Python's compiler or a filter reached a limit of its own.
        raise TemplateProblems([(line_of_error(e), f"template: {_message_of(e)}")]) from e


def _render(text: str, given: Mapping[str, Any]) -> Rendered:
    if found := PRIVATE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise TemplateProblems([(line, f"the character U+{ord(found[0]):04X} is not allowed")])
    template, values = split_values(text)
    if unknown := list(tokens.unknown_tokens(RAW.sub(_blanked, template))):
        raise TemplateProblems(unknown)
    hidden = tokens.hide(template)
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    tree = _parsed(environment, hidden)
    _refuse_unused(given, values, meta.find_undeclared_variables(tree))
    merged = {**values, **given}
    rendered = _rendered(environment, hidden, tree, merged)
    return Rendered(
        text=tokens.reveal(rendered),
        lines=_source_lines(environment, hidden, rendered, merged),
    )


def split_values(text: str) -> tuple[str, dict[str, Any]]:
    """(the file with its `default-values` replaced by empty lines, those values). Raises TemplateProblems."""
    lines = text.splitlines(keepends=True)
    keys = [(number, found[1]) for number, line in enumerate(lines) if (found := TOP_KEY.match(line))]
    begins = [number for number, key in keys if key == VALUES_KEY]
    if not begins:
        return text, {}
    if len(begins) > 1:
        raise TemplateProblems([(begins[1] + 1, f"{VALUES_KEY}: written twice (first in line {begins[0] + 1})")])
    begin = begins[0]
    end = next((number for number, _ in keys if number > begin), len(lines))
    values = _values("\n" * begin + "".join(lines[begin:end]), begin + 1)
    rest = [*lines[:begin], *("\n" for _ in range(end - begin)), *lines[end:]]
    return "".join(rest), values


def read_settings(words: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
    """Name → value: of `--set` as int or float if it is a number, of `--set-string` always as text.

    Raises TemplateProblems.
    """
    found: dict[str, Any] = {}
    problems = []
    for flag, pairs in (("--set", words), ("--set-string", texts)):
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals or NAME.fullmatch(name) is None:
                problems.append((None, f"{flag} {pair!r}: write NAME=VALUE"))
            found[name] = _number(value) if flag == "--set" else value
    if problems:
        raise TemplateProblems(problems)
    return found


def _blanked(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _values(text: str, line: int) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text)[VALUES_KEY]
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        problem = getattr(e, "problem", None) or "not YAML"
        where = line if mark is None else mark.line + 1
        raise TemplateProblems([(where, f"{VALUES_KEY}: not YAML: {problem}")]) from e
    if found is None:
        return {}
    if not isinstance(found, dict) or any(NAME.fullmatch(str(name)) is None for name in found):
        raise TemplateProblems([(line, f"{VALUES_KEY}: write names with their values, such as n_nodes: 2")])
    return {str(name): value for name, value in found.items()}


def _parsed(environment: SandboxedEnvironment, hidden: str) -> nodes.Template:
    try:
        return environment.parse(hidden)
    except TemplateSyntaxError as e:
        raise TemplateProblems([(e.lineno, f"template: {tokens.reveal(e.message or 'not Jinja')}")]) from e


def _refuse_unused(given: Mapping[str, Any], values: Mapping[str, Any], used: Iterable[str]) -> None:
    """Raises TemplateProblems for a value that the file does not use: a misspelt `--set` would silently do nothing."""
    known = {*values, *used}
    unused = [name for name in given if name not in known]
    if unused:
        raise TemplateProblems(
            (None, f"--set {name}=…: the file has no such value{did_you_mean(name, known)}") for name in unused
        )


def _rendered(environment: SandboxedEnvironment, source: str, tree: nodes.Template, values: Mapping[str, Any]) -> str:
    parts, size = [], 0
    try:
        rendering = cast(Generator[str], environment.from_string(source).generate(dict(values)))
        for part in rendering:
            size += len(part)
            if size > MOST_RENDERED:
                # Thrown into the template's code, so that the error has the template's line.
                rendering.throw(SecurityError(f"it renders to more than {MOST_RENDERED} characters"))
            parts.append(part)
    except UndefinedError as e:
        raise TemplateProblems(
            _undefined(environment, tree, values) or [(line_of_error(e), f"template: {_message_of(e)}")]
        ) from e
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as e:
        raise TemplateProblems([(line_of_error(e), f"template: {_message_of(e)}")]) from e
    return "".join(parts)


def _undefined(
    environment: SandboxedEnvironment, tree: nodes.Template, values: Mapping[str, Any]
) -> list[tuple[int | None, str]]:
    """(line, sentence) for each name without a value, at the line where it is used first."""
    missing = meta.find_undeclared_variables(tree) - set(values)
    first: dict[str, int] = {}
    for used in tree.find_all(nodes.Name):
        if used.ctx == "load" and used.name in missing:
            first.setdefault(used.name, used.lineno)
    found: list[tuple[int | None, str]] = []
    for name, line in sorted(first.items(), key=lambda pair: (pair[1], pair[0])):
        if name in tokens.KNOWN:
            found.append((line, f"{{{{ {name} }}}}: write it without blanks: {{{{{name}}}}}"))
            continue
        nearest = did_you_mean(name, [*values, *environment.globals])
        found.append((line, f"template: {name} has no value{nearest}: --set {name}=…, or {VALUES_KEY}"))
    return found


def _message_of(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return f"it takes more than {MOST_MEMORY_MIB} MiB of memory to render"
    return tokens.reveal(str(error)) or type(error).__name__


def line_of_error(error: BaseException) -> int | None:
    """The template's line in which the error was raised, as Jinja writes it into the frames; None if it does not."""
    found, frame = None, error.__traceback__
    while isinstance(frame, TracebackType):
        if frame.tb_frame.f_code.co_filename == TEMPLATE_FILE:
            found = frame.tb_lineno
        frame = frame.tb_next
    return found


def _source_lines(
    environment: SandboxedEnvironment, hidden: str, rendered: str, values: Mapping[str, Any]
) -> tuple[int, ...]:
    """The source line of each rendered line, found by rendering again with each line's number appended to it.

    Empty if the marks change what is rendered, as in a template that compares or cuts its own texts.
    """
    try:
        marked = environment.from_string(_marked(environment, hidden)).render(dict(values))
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError):
        return ()
    if MARK.sub("", marked) != rendered:
        return ()
    found: list[int] = []
    for line in marked.split("\n"):
        marks = MARK.findall(line)
        found.append(int(marks[-1]) if marks else found[-1] + 1 if found else 1)
    return tuple(found)


def _marked(environment: SandboxedEnvironment, source: str) -> str:
    parts = []
    for first, kind, value in environment.lex(source):
        if kind != "data":
            parts.append(value)
            continue
        *whole, rest = value.split("\n")
        for number, line in enumerate(whole, start=first):
            parts.append(f"{line}{MARK_OPEN}{number}{MARK_CLOSE}\n")
        parts.append(rest)
    return "".join(parts)
