"""A phase of a boot: how it waits, and how it says that it cannot be passed."""

from typing import Callable

from clusterctl_bootstrap.node.outside import Outside

POLL_S = 0.05
LONGEST_PAUSE_S = 15.0


class PhaseFailed(Exception):
    """A phase that cannot be passed; the text is for a person."""


def wait(
    outside: Outside, timeout_s: float, hindrance: Callable[[], str], pause_s: float = POLL_S, growth: float = 1
) -> None:
    """Returns when `hindrance` returns an empty text. Raises PhaseFailed with its text when the time is over."""
    until = outside.monotonic() + timeout_s
    while True:
        seen = hindrance()
        if not seen:
            return
        if outside.monotonic() > until:
            raise PhaseFailed("after %d s: %s" % (timeout_s, seen))
        outside.sleep(pause_s)
        pause_s = min(pause_s * growth, LONGEST_PAUSE_S)
