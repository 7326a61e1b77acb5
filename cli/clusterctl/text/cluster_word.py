"""Finds the command that was meant where a person wrote a cluster's or a node's name and the verb wants something else.
Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clusterctl_infra.names import clusters_called

_EXTRA = re.compile(r"got unexpected extra argument \((?P<word>\S+)\)\.?", re.IGNORECASE)
"""click's sentence (8.5)."""


@dataclass(frozen=True, kw_only=True)
class ClusterWord:
    """What a word names."""

    kind: str
    """`a cluster`, or `a node of train`."""
    flag: str
    """The flag after which the verb takes the word."""
    hint: str
    """The command that was meant."""


def extra_word(message: str) -> str | None:
    """The word in click's message about an argument that the verb does not take; None for any other message."""
    match = _EXTRA.fullmatch(message)
    return None if match is None else match["word"]


def cluster_word(word: str, known: Sequence[str], *, typed: str, flags: Collection[str]) -> ClusterWord | None:
    """Which of the `known` clusters, or whose node, the word names; None: nothing, or the verb has no flag for it.

    `typed`: the verb, such as `clusterctl status`; `flags`: those that it has.
    """
    base, _, number = word.rpartition("-")
    cluster = _called(word, known)
    if cluster is not None:
        return _with_flags("a cluster", [*typed.split(), "--cluster", cluster], flags)
    cluster = _called(base, known) if number.isdecimal() else None
    if cluster is None:
        return None
    return _with_flags(f"a node of {base}", [*typed.split(), "--cluster", cluster, "--node", word], flags)


def _called(name: str, known: Sequence[str]) -> str | None:
    return next((each for each in clusters_called(name) if each in known), None)


def _with_flags(kind: str, words: Sequence[str], flags: Collection[str]) -> ClusterWord | None:
    if not {word for word in words if word.startswith("--")} <= set(flags):
        return None
    return ClusterWord(kind=kind, flag="--node" if "--node" in words else "--cluster", hint=shlex.join(words))
