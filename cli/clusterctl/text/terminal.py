"""Text as a terminal can show it: cut to its width, and in the characters that its encoding has. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.text.table import display_width

CUT = "…"
UNKNOWN_COLUMNS, UNKNOWN_ROWS = 80, 24
PLAINER: Mapping[str, str] = {
    "·": "-",
    "–": "-",
    "×": "x",
    "✓": "+",
    "✗": "!",
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "°": " ",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
}
"""What replaces our own signs in an encoding that lacks them; most are as wide, so that columns stay columns."""


def cut_to(text: str, columns: int) -> str:
    """The line, cut to at most `columns` terminal cells; a line that is cut ends in `…`."""
    if display_width(text) <= columns:
        return text
    kept, room = [], columns - 1
    for character in text:
        room -= display_width(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + CUT if columns > 0 else ""


def screenful(text: str, *, columns: int, rows: int) -> list[str]:
    """The lines of one screen: none is wrapped, and the last says how many more there are."""
    lines = [cut_to(line, columns) for line in text.splitlines()]
    if len(lines) <= rows:
        return lines
    shown = max(0, rows - 1)
    return [*lines[:shown], cut_to(f"… {len(lines) - shown} more lines: make the window higher", columns)]


def encoded(text: str, encoding: str) -> bytes:
    """The bytes of `text`; signs that the encoding lacks are replaced by others."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_plainer(character, encoding) for character in text).encode(encoding, errors="replace")


def _plainer(character: str, encoding: str) -> str:
    if character not in PLAINER:
        return character
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return PLAINER[character]
    return character
