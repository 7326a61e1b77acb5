"""A task's command under way: who stops it, and how long it has to end, so that time is left to keep its outputs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Optional, Protocol, Sequence

POLL_S = 0.5
STOP_S = 30.0
"""The time from SIGTERM to SIGKILL; the task itself has more, which is for its outputs."""
RECLAIM_S = 125.0
"""How long before its node's end a command is stopped: AWS's two minutes, and 5 s by which clocks may differ."""
WARNING_FILE = "CLUSTERCTL_WARNING_FILE"
DEADLINE = "the cluster's deadline"
"""The reason for an end for which the job's supervisor stops the job anyway (`WHY` in job/warned.py)."""
CANNOT_RUN, NOT_FOUND = 126, 127
STOPPED = 128 + int(signal.SIGTERM)
"""The exit code of a command that was stopped because its node ends, and exited with 0."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    """Its exit code, or 128 + its signal."""
    why: str
    """Why its node ends, if it was stopped for that; else empty."""


class Child(Protocol):
    """The command's process, the first of its group. `wait` raises subprocess.TimeoutExpired."""

    @property
    def pid(self) -> int: ...
    def wait(self, timeout: float) -> int: ...


class Command:
    """Runs the command in a process group of its own; SIGTERM to this process goes there."""

    def __init__(
        self,
        say: Callable[[str], None],
        stop_s: float = STOP_S,
        *,
        send: Callable[[int, int], None] = os.killpg,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._stop_s = stop_s
        self._send = send
        self._clock = clock
        self._child: Optional[Child] = None
        self._is_asked = False
        self._kill_at_s = float("inf")
        self._why = ""

    def run(self, argv: Sequence[str], environment: Mapping[str, str], folder: str) -> Ended:
        """Runs the command; returns when it has ended."""
        signal.signal(signal.SIGTERM, lambda number, frame: self.stop())
        try:
            child = subprocess.Popen(list(argv), env=dict(environment), cwd=folder, start_new_session=True)
        except OSError as e:
            self._say("%s: %s" % (argv[0], e.strerror))
            return Ended(NOT_FOUND if isinstance(e, FileNotFoundError) else CANNOT_RUN, "")
        return self.follow(child, environment)

    def follow(self, child: Child, environment: Mapping[str, str]) -> Ended:
        """Returns when the child has ended. Stops it once `stop` was called, or its node is about to end."""
        self._child = child
        if self._is_asked:  # before there was a child to tell
            self.stop()
        while True:
            try:
                status = child.wait(POLL_S)
                break
            except subprocess.TimeoutExpired:
                self._look(environment)
        self._child = None  # its number may be another process's from now on
        code = 128 - status if status < 0 else status
        return Ended(code or (STOPPED if self._why else 0), self._why)

    def _look(self, environment: Mapping[str, str]) -> None:
        if not self._is_asked:
            warning = node_end(Path(environment.get(WARNING_FILE, "")), time.time())
            if warning is not None:
                self._why, left_s = warning
                self._say("this node ends in %d seconds (%s): the command is stopped" % (left_s, self._why))
                self.stop()
        if self._clock() > self._kill_at_s:
            self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Sends SIGTERM now; SIGKILL follows once the command's time is over."""
        self._is_asked = True
        if self._child is not None and self._kill_at_s == float("inf"):
            self._kill_at_s = self._clock() + self._stop_s
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self._child is not None:
            try:
                self._send(self._child.pid, number)
            except ProcessLookupError:
                pass  # it has ended


def node_end(path: Path, now_s: float) -> Optional[tuple[str, float]]:
    """Why the task's node is about to end, and in how many seconds; None while it is not.

    The deadline is left out: the job is stopped for it anyway. No job is stopped when AWS takes a spot machine back, or
    by a rule of the cluster.
    """
    try:
        words = json.loads(path.read_bytes())
        why, left_s = str(words["why"]), float(words["ends_s"]) - now_s
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return (why, max(0.0, left_s)) if why != DEADLINE and left_s <= RECLAIM_S else None
