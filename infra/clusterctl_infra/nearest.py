"""The nearest known word to a mistyped one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was probably meant; None when none is near."""
    difflib = importlib.import_module("difflib")
    by_lower = {each.lower(): each for each in allowed}
    near = difflib.get_close_matches(word.lower()[:80], by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """` (did you mean nodes?)`, or nothing when no allowed word is near."""
    near = nearest(word, allowed)
    return "" if near is None else f" (did you mean {near}?)"
