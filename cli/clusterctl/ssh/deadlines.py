"""How long each phase of reaching a node may take."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """Seconds for each phase, and for all of them together until a command can start.

    Ten seconds are three lost SYNs; a healthy node over a 200 ms line takes under two for all of it.
    """

    total_s: float = 15.0
    connect_s: float = 10.0
    greeting_s: float = 10.0
    """Until the server's version line has come; what a proxy command needs to connect counts here, too."""
    key_exchange_s: float = 10.0
    login_s: float = 10.0
    session_s: float = 10.0
    silence_s: float = 45.0
    """While a command runs: a node that gives no sign of life for this long is lost."""

    @classmethod
    def within(cls, total_s: float) -> Deadlines:
        """Deadlines by which all phases together take at most `total_s`, and each one may take all that is left."""
        return cls(
            total_s=total_s,
            connect_s=total_s,
            greeting_s=total_s,
            key_exchange_s=total_s,
            login_s=total_s,
            session_s=total_s,
        )


class Clock:
    """Counts down the total time, from the moment at which it is made."""

    def __init__(self, total_s: float) -> None:
        self._began_at = time.monotonic()
        self._ends_at = self._began_at + total_s

    def left_s(self, phase_s: float) -> float:
        """The shorter of the phase's time and what is left of all; never below a millisecond."""
        return max(0.001, min(phase_s, self._ends_at - time.monotonic()))

    def ends_at(self, phase_s: float) -> float:
        """When a phase that begins now is over, on the monotonic clock."""
        return min(time.monotonic() + phase_s, self._ends_at)

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began_at
