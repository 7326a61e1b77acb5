"""Text whose control characters are shown as escapes. Pure.

What a node, AWS, a file or a name says may hold characters that move a terminal's cursor, rename its window, answer
in the person's name or turn the order of letters around (U+202E; see CVE-2021-42574). Shown as Python writes them
(`\\x1b`, `\\u202e`), they do nothing, and the person sees that they were there.
"""

from __future__ import annotations

import re

# C0 and DEL but for tab and newline, C1, and what changes the direction of text (Unicode 16, UAX 9).
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_DIRECTIONS}]")
_ALL_CONTROLS = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{_DIRECTIONS}]")


def visible(text: str) -> str:
    """The text with every control character but tab and newline as its escape."""
    return _CONTROLS.sub(_escape, text)


def visible_in_a_line(text: str) -> str:
    """The text of one cell or line, with tab and newline as escapes, too."""
    return _ALL_CONTROLS.sub(_escape, text)


def visible_in_json(document: str) -> str:
    """A JSON document with the control characters in its strings as JSON's own escapes: a reader gets the same value.

    With `ensure_ascii=False`, `json.dumps` itself escapes only C0.
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def _escape(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]
