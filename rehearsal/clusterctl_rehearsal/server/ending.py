"""When a region's process ends by itself: it has no resource, is idle, and has announced its end."""

from __future__ import annotations

from collections.abc import Callable

from clusterctl_rehearsal.full_disk import log_traceback
from clusterctl_rehearsal.server.activity import Activity

IDLE_S = 10.0
"""The process ends when there is no resource and there was no request for this long."""


class Ending:
    """Decides, each time that it is asked, whether the process ends now."""

    def __init__(
        self,
        *,
        activity: Activity,
        announce: Callable[[bool], None],
        is_empty: Callable[[], bool],
    ) -> None:
        """`announce`: writes down whether the region is about to end, and may raise OSError, as on a full disk."""
        self._activity = activity
        self._announce = announce
        self._is_empty = is_empty
        self._must_withdraw = False

    def has_come(self) -> bool:
        """Whether the process ends now: it is idle and empty, has announced its end, and had no request meanwhile.

        It never ends unannounced: a client that has just read its address would find nobody there.
        """
        if self._must_withdraw:
            self._withdraw()
        if not self._activity.is_idle(IDLE_S) or not self._is_empty():
            return False
        try:
            self._announce(True)
        except OSError:  # the next round tries again
            return False
        if self._activity.end_if_idle(IDLE_S):
            return True
        self._withdraw()
        return False

    def _withdraw(self) -> None:
        """Announces that the region goes on; until that is written, clients do not use it and start the next one."""
        self._must_withdraw = True
        try:
            self._announce(False)
        except OSError:  # the next round tries again
            log_traceback()
        else:
            self._must_withdraw = False
