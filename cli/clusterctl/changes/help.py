"""What is said beside a refusal of AWS's: the sentence and the command that its own words leave out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Help:
    """What AWS's own sentence leaves open."""

    sentence: str
    hint: str | None
    """None: the same again may be granted."""
