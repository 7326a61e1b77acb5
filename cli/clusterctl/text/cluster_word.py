"""The name of a cluster or a node where a verb wants something else: the command that was meant. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clusterctl_infra.names import REHEARSAL_SUFFIX

_EXTRA = re.compile(r"got unexpected extra argument \((?P<word>\S+)\)\.?", re.IGNORECASE)
"""click's sentence (8.5)."""


@dataclass(frozen=True, kw_only=True)
class ClusterWord:
    """What a word names."""

    kind: str
    """`a cluster`, or `a node of train`."""
    flag: str
    """Behind which the verb takes it."""
    hint: str
    """The command that was meant."""


def extra_word(message: str) -> str | None:
    """The word in click's message that a verb takes none of; None in any other message."""
    match = _EXTRA.fullmatch(message)
    return None if match is None else match["word"]


def cluster_word(word: str, known: Sequence[str], *, typed: str, flags: Collection[str]) -> ClusterWord | None:
    """What the word names of the `known` clusters; None where it names nothing, or the verb has no flag for it.

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
    return next((each for each in (name, name + REHEARSAL_SUFFIX) if each in known), None)


def _with_flags(kind: str, words: Sequence[str], flags: Collection[str]) -> ClusterWord | None:
    if not {word for word in words if word.startswith("--")} <= set(flags):
        return None
    return ClusterWord(kind=kind, flag="--node" if "--node" in words else "--cluster", hint=shlex.join(words))
