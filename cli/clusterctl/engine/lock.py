"""Locks of a stack kept in files: who holds it, and whether that process still lives (diy backend, engine 3.250)."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from clusterctl.engine.processes import find_process
from clusterctl.engine.stack import Stack

_LOCKED = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


@dataclass(frozen=True, kw_only=True)
class Lock:
    """One lock on a stack."""

    user: str
    host: str
    pid: int
    since: str

    @property
    def is_dead(self) -> bool:
        """Its process ran on this computer and is gone."""
        return self.host == socket.gethostname() and find_process(self.pid) is None

    @property
    def named(self) -> str:
        """Who holds it, as a sentence."""
        return f"pulumi is changing this stack: started by {self.user} on {self.host} (pid {self.pid}) at {self.since}"


def locks_in(backend_url: str, stack: Stack) -> tuple[Lock, ...]:
    """The locks in a file backend; none when the backend is of another kind."""
    parts = urlsplit(backend_url)
    if parts.scheme != "file":
        return ()
    folder = Path(parts.path) / ".pulumi" / "locks" / "organization" / stack.project / stack.name
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
