"""AWS's request limit: a token bucket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from clusterctl_rehearsal.refusal import AwsError


class Throttle:
    """Allows a burst of two seconds' worth, then the rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = 0.0
        self._at = 0.0

    def take(self, requests_per_s: int) -> None:
        """Counts one request; a rate of 0 is no limit. Raises RequestLimitExceeded."""
        if requests_per_s == 0:
            return
        with self._lock:
            now = self._clock()
            self._tokens = min(2.0 * requests_per_s, self._tokens + (now - self._at) * requests_per_s)
            self._at = now
            if self._tokens < 1:
                raise AwsError("RequestLimitExceeded", "Request limit exceeded.", status=503)
            self._tokens -= 1
