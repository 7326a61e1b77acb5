"""Locks of a stack kept in files: who holds it, and whether that process still lives (diy backend, engine 3.250)."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from clusterctl.engine.processes import command_line, find_process, started_at
from clusterctl.engine.stack import Stack
from clusterctl.engine.strays import is_engine

_LOCKED = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")
CLOCK_SLACK = timedelta(seconds=5)
"""A lock is written after its process started; the kernel counts that start in ticks from a rounded boot time."""


@dataclass(frozen=True, kw_only=True)
class Lock:
    """One lock on a stack."""

    user: str
    host: str
    pid: int
    since: str

    @property
    def is_dead(self) -> bool:
        """Its process ran on this computer and is gone, or its number is another process's by now."""
        if self.host != socket.gethostname():
            return False
        process = find_process(self.pid)
        return process is None or self._is_older_than(started_at(process))

    def _is_older_than(self, start: datetime | None) -> bool:
        """Whether who has the number now began after the lock; an engine never counts: the clock may have been set."""
        since = _instant(self.since)
        if start is None or since is None or since + CLOCK_SLACK >= start:
            return False
        return not is_engine(command_line(self.pid))

    @property
    def named(self) -> str:
        """Who holds it, as a sentence."""
        return f"pulumi is changing this stack: started by {self.user} on {self.host} (pid {self.pid}) at {self.since}"

    @property
    def told(self) -> str:
        """The same, with what a person may do about it."""
        return f"{self.named}; wait for it, or end it"

    @property
    def end_it(self) -> str:
        """The command for that."""
        return f"kill -INT {self.pid}"


def shows_locks(backend_url: str) -> bool:
    """Whether the backend's locks are files that can be seen from here."""
    return urlsplit(backend_url).scheme == "file"


def locks_in(backend_url: str, stack: Stack) -> tuple[Lock, ...]:
    """The locks in a file backend; none when the backend is of another kind."""
    if not shows_locks(backend_url):
        return ()
    folder = Path(urlsplit(backend_url).path) / ".pulumi" / "locks" / "organization" / stack.project / stack.name
    found = (_read(path) for path in sorted(folder.glob("*.json")))
    return tuple(lock for lock in found if lock is not None)


def locks_named(text: str) -> tuple[Lock, ...]:
    """The locks that the engine's refusal names: `the stack is currently locked by 1 lock(s) …`."""
    if "currently locked by" not in text:
        return ()
    return tuple(
        Lock(user=match["user"], host=match["host"], pid=int(match["pid"]), since=match["since"])
        for match in _LOCKED.finditer(text)
    )


def _read(path: Path) -> Lock | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Lock(
            user=str(data["username"]), host=str(data["hostname"]), pid=int(data["pid"]), since=str(data["timestamp"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _instant(text: str) -> datetime | None:
    """The time that the engine wrote, RFC 3339 with nanoseconds; None for what is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
