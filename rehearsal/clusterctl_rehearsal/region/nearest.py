"""The word that a person may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """`did you mean X?` for a close word, else the words there are."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
