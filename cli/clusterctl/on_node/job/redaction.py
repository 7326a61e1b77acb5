"""Secrets whose values are known, replaced in what ranks say and in what goes to somebody else. Pure."""

from __future__ import annotations

import heapq
import io
from typing import Iterable, Iterator, Optional, Tuple

SHORTEST = 4
"""A shorter value, such as `1`, is in too many lines that have nothing to do with it."""
HIDDEN = b"***"
Span = Tuple[int, int]
"""Begin and end."""


def hidden_bytes(values: Iterable[str]) -> Tuple[bytes, ...]:
    """What is replaced: each line of each value, the longest first."""
    lines = {line.strip().encode("utf-8", "surrogatepass") for value in values for line in value.splitlines()}
    return tuple(sorted((line for line in lines if len(line) >= SHORTEST), key=lambda line: (-len(line), line)))


def redacted(content: bytes, hidden: Iterable[bytes]) -> bytes:
    """The content without these secrets; those that overlap are replaced as one."""
    return _without(content, _spans(content, hidden))


class Redactor:
    """Hides secrets in lines that come in pieces, also a secret that begins in one piece and ends in another.

    Of an unfinished line it keeps back one byte less than the longest secret has: a secret that is not complete yet
    begins among those bytes.
    """

    def __init__(self, hidden: Iterable[bytes]) -> None:
        self._hidden = tuple(hidden)
        self._most_kept = max((len(secret) for secret in self._hidden), default=1) - 1
        self._kept = b""
        self._covered = 0
        """How many of the bytes kept back, from the first on, end a secret that began before them."""
        self._is_begun = False
        """Whether a piece of this line was given back already."""

    def feed(self, piece: bytes, *, is_last: bool) -> Optional[bytes]:
        """What can be shown of the line by now; None: nothing more than before. `is_last`: the line ends here."""
        held = self._kept + piece
        cut = len(held) if is_last else max(0, len(held) - self._most_kept)
        spans = list(_spans(held, self._hidden, self._covered))
        shown = _without(held[:cut], [(begin, min(end, cut)) for begin, end in spans if begin < cut])
        self._kept = held[cut:]
        self._covered = next((end - cut for begin, end in spans if begin <= cut < end), 0)
        is_more = bool(shown) or (is_last and not self._is_begun)
        self._is_begun = not is_last and (self._is_begun or is_more)
        return shown if is_more else None


def _spans(content: bytes, hidden: Iterable[bytes], covered: int = 0) -> Iterator[Span]:
    """Where the secrets, and the first `covered` bytes, are; those that overlap are one. In their order.

    One at a time: a large log may have millions.
    """
    known = [(0, covered)] if covered else []
    begin = end = 0
    for first, last in heapq.merge(known, *(_occurrences(content, secret) for secret in hidden)):
        if first < end:
            end = max(end, last)
            continue
        if end:
            yield begin, end
        begin, end = first, last
    if end:
        yield begin, end


def _occurrences(content: bytes, secret: bytes) -> Iterator[Span]:
    """Where this secret is; occurrences that overlap, as of `abab` in `ababab`, are one."""
    size = len(secret)
    begin = content.find(secret)
    while begin >= 0:
        end, later = begin, begin
        while later >= 0:
            end, later = later + size, content.find(secret, later + 1, later + 2 * size - 1)
        yield begin, end
        begin = content.find(secret, end)


def _without(content: bytes, spans: Iterable[Span]) -> bytes:
    shown, view, at = io.BytesIO(), memoryview(content), 0
    for begin, end in spans:
        shown.write(view[at:begin])
        shown.write(HIDDEN)
        at = end
    shown.write(view[at:])
    return shown.getvalue()
