"""How long nodes are waited for: their usual time, and longer for those that get on, as on a computer under load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_TIMES_USUAL = 3.0
"""A node that boots again and again gets on for ever."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When waiting for nodes is over."""

    usual_s: float
    """A healthy node takes no longer; `--ready-timeout` says its own."""
    phase_s: float = 0.0
    """After that, one that entered another phase within so long is waited for still; 0: none is."""

    def is_over(self, waited_s: float, quiet_s: Iterable[float]) -> bool:
        """`quiet_s`: of each node that is waited for, how long ago it entered its phase. Pure."""
        if waited_s < self.usual_s:
            return False
        return waited_s >= MOST_TIMES_USUAL * self.usual_s or not any(quiet < self.phase_s for quiet in quiet_s)
