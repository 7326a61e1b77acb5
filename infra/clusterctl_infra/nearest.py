"""The nearest known word to a mistyped one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """` (did you mean nodes?)`, or nothing when no allowed word is near."""
    difflib = importlib.import_module("difflib")  # loaded on use: 1 ms of every start
    by_lower = {each.lower(): each for each in allowed}
    near = difflib.get_close_matches(word.lower()[:80], by_lower, n=1, cutoff=0.6)
    return f" (did you mean {by_lower[near[0]]}?)" if near else ""
