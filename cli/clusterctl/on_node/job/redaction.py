"""Secrets whose values are known, replaced in what ranks say and in what goes to somebody else. Pure."""

from __future__ import annotations

from typing import Iterable, Tuple

SHORTEST = 4
"""A shorter value, as `1`, is in too many lines that have nothing to do with it."""
HIDDEN = b"***"


def hidden_bytes(values: Iterable[str]) -> Tuple[bytes, ...]:
    """What is replaced: each line of each value, the longest first."""
    lines = {line.strip().encode("utf-8", "surrogatepass") for value in values for line in value.splitlines()}
    return tuple(sorted((line for line in lines if len(line) >= SHORTEST), key=lambda line: (-len(line), line)))


def redacted(content: bytes, hidden: Iterable[bytes]) -> bytes:
    """The content without these secrets."""
    for secret in hidden:
        content = content.replace(secret, HIDDEN)
    return content
