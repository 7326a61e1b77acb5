"""A probe: one command for the node's shell, and one pure parser of what it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Reading = TypeVar("Reading")


class ProbeUnreadable(Exception):
    """The command printed something that the parser does not know; the message shows it."""


@dataclass(frozen=True, kw_only=True)
class Probe(Generic[Reading]):
    """`command` is POSIX sh and changes nothing on the node; `parse` raises ProbeUnreadable."""

    name: str
    meaning: str
    """A phrase for help and documentation."""
    command: str
    limit_s: int
    parse: Callable[[str], Reading]


@dataclass(frozen=True, kw_only=True)
class ProbeTrouble:
    """A probe without a reading, and why: data like any other."""

    message: str


def first_words(text: str, most: int = 100) -> str:
    """The first line that says something, shortened, for messages."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return line if len(line) <= most else line[: most - 1] + "…"
