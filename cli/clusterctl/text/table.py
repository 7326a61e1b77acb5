"""Text tables: two spaces between columns, no rules, trailing blanks cut, control characters shown as escapes."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence

from clusterctl.text.visible import visible_in_a_line

INDENT = "  "
GAP = "  "


def render_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()) -> str:
    """The table as lines without a final newline; columns named in `right` are right-aligned."""
    lines = [tuple(header), *(tuple(visible_in_a_line(cell) for cell in row) for row in rows)]
    widths = [max(display_width(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        (
            INDENT
            + GAP.join(
                _padded(cell, width, name in right) for cell, width, name in zip(line, widths, header, strict=True)
            )
        ).rstrip()
        for line in lines
    )


def display_width(text: str) -> int:
    """How many terminal cells `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _padded(cell: str, width: int, is_right: bool) -> str:
    blanks = " " * (width - display_width(cell))
    return blanks + cell if is_right else cell + blanks


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
