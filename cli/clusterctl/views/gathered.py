"""Equal outputs of many nodes shown once, under the names of all that gave them; others as a diff to the majority."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterctl.node_set import fold_names

INDENT = b"  "
MOST_DIFF_LINES = 2000
"""Comparing takes time by the square of the length; longer outputs are shown whole."""


@dataclass(frozen=True, kw_only=True)
class SameOutput:
    """Nodes whose output is the same; `read` gives it."""

    names: tuple[str, ...]
    read: Callable[[], bytes]
    is_empty: bool
    is_truncated: bool


def render_gathered(groups: Sequence[SameOutput]) -> bytes:
    """All groups, the largest first; nothing when nobody said anything."""
    if all(group.is_empty for group in groups):
        return b""
    ordered = sorted(groups, key=lambda group: -len(group.names))
    majority = ordered[0] if _is_majority(ordered) else None
    common = majority.read() if majority is not None else b""
    parts = []
    for group in ordered:
        is_other = majority is not None and group is not majority
        parts.append(_rendered(group, common=common if is_other else None))
    return b"".join(parts)


def _is_majority(ordered: Sequence[SameOutput]) -> bool:
    """The first is more than one node, and larger than any other."""
    first = len(ordered[0].names)
    return first > 1 and (len(ordered) == 1 or len(ordered[1].names) < first)


def _rendered(group: SameOutput, *, common: bytes | None) -> bytes:
    said = group.read()
    body, note = _body(said, common)
    head = fold_names(group.names) + (f" ({len(group.names)} nodes)" if len(group.names) > 1 else "") + note
    if group.is_truncated:
        body += INDENT + b"[truncated: there was more]\n"
    return head.encode() + b"\n" + body


def _body(said: bytes, common: bytes | None) -> tuple[bytes, str]:
    """The indented text under a group's names, and what stands behind the names."""
    if not said:
        return INDENT + b"(no output)\n", ""
    lines = said.splitlines(keepends=True)
    if common is None or not common:
        return _indented(lines), ""
    if len(lines) == 1:
        text = lines[0].rstrip(b"\r\n")
        return INDENT + text.ljust(48) + "  ← differs\n".encode(), ""
    diff = _diff(said, common)
    if diff is None:
        return _indented(lines), " (differs)"
    return _indented([line.encode() for line in diff]), " (differs: - as most have it, + as it is here)"


def _diff(said: bytes, common: bytes) -> list[str] | None:
    """The differing lines with one around them; None when whole outputs tell more, or are no text."""
    try:
        here, there = said.decode().splitlines(keepends=True), common.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    if max(len(here), len(there)) > MOST_DIFF_LINES:
        return None
    diff = list(difflib.unified_diff(there, here, n=1))[2:]
    return diff if len(diff) < len(here) else None


def _indented(lines: Sequence[bytes]) -> bytes:
    text = b"".join(INDENT + line for line in lines)
    return text if text.endswith(b"\n") else text + b"\n"
