"""Locks of a stack: who holds it, and whether that process is surely gone (diy backends, engine 3.250).

A lock names a user, a host name, a pid and a time, and a host name is no proof of a computer: two laptops, or a head
node's spare, may be called the same, with one home on NFS or one bucket. If clusterctl took a living run's lock for a
dead one, it would end that run's machines. So a lock counts as dead only if its process is gone, and either this
computer itself wrote down that it started that very process (engine_start.py), whatever the backend; or the lock is a
file on a disk of this computer, which nobody else writes to: this also covers what a plain `pulumi up` left.

A container may have its host's name and share its folders, with pids of its own. So inside a container only its own
file systems count as its own disk, and outside a pid is looked for within containers, too. About any other lock a
person decides, with `pulumi cancel`.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clusterctl_infra.strict_json import NotAsExpected, parsed_object

from clusterctl.engine.backend import folder_of, lock_folder
from clusterctl.engine.engine_start import CLOCK_SLACK, EngineStart
from clusterctl.engine.stack import Stack
from clusterctl.engine.strays import is_engine
from clusterctl.system.own_disk import is_on_own_disk
from clusterctl.system.pid_namespace import numbered_within
from clusterctl.system.processes import LARGEST_PID, command_line, find_process, sees_all_processes, started_at

_LOCKED = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


@dataclass(frozen=True, kw_only=True)
class Lock:
    """One lock on a stack."""

    user: str
    host: str
    pid: int
    since: str
    is_of_own_disk: bool = False
    """Whether it is a file that only this computer can have written."""

    def is_dead(self, starts: Sequence[EngineStart]) -> bool:
        """Whether its process surely ran on this computer, and is gone.

        `starts`: the engine's starts that this computer noted.
        """
        since = _instant(self.since)
        noted = [start for start in starts if since and start.took(host=self.host, pid=self.pid, since=since)]
        if noted:
            return all(start.is_gone for start in noted)  # in a container two may get the same pid within minutes
        return self.is_of_own_disk and self._is_gone_from_here

    @property
    def is_seen(self) -> bool:
        """Whether this computer has the lock's host name, and a living process with its pid."""
        return self.host == socket.gethostname() and find_process(self.pid) is not None

    @property
    def named(self) -> str:
        """A sentence about who holds the lock."""
        return f"pulumi is changing this stack: started by {self.user} on {self.host} (pid {self.pid}) at {self.since}"

    @property
    def message(self) -> str:
        """Who holds the lock, and what a person may do about it."""
        if self.is_seen:
            return f"{self.named}; wait for it, or end it"
        advice = "if you are certain that it has ended, which this computer cannot see, remove its lock"
        return f"{self.named}; wait for it; {advice}"

    def end_it(self, *, cancel: str) -> str:
        """The command that ends the holder; `cancel`: the command that removes the stack's lock, whoever holds it."""
        return f"kill -INT {self.pid}" if self.is_seen else cancel

    @property
    def _is_gone_from_here(self) -> bool:
        """Whether no process of this computer holds the lock; its pid may be another process's by now."""
        if self.host != socket.gethostname() or not sees_all_processes():
            return False
        process = find_process(self.pid)
        if process is not None and not self._is_older_than(started_at(process)):
            return False
        return not any(is_engine(command_line(pid)) for pid in numbered_within(self.pid))

    def _is_older_than(self, start: datetime | None) -> bool:
        """Whether the process that has the pid now began after the lock was made; never true of an engine, because
        the clock may have been set.
        """
        since = _instant(self.since)
        if start is None or since is None or since + CLOCK_SLACK >= start:
            return False
        return not is_engine(command_line(self.pid))


def shows_locks(backend_url: str) -> bool:
    """Whether the backend's locks are files that can be seen from here."""
    return folder_of(backend_url) is not None


def locks_in(backend_url: str, stack: Stack) -> tuple[Lock, ...]:
    """The locks in a file backend; none when the backend is of another kind."""
    root = folder_of(backend_url)
    if root is None:
        return ()
    folder = lock_folder(root, stack)
    files = sorted(folder.glob("*.json"))
    is_own = bool(files) and is_on_own_disk(folder)
    found = (_read(path, is_of_own_disk=is_own) for path in files)
    return tuple(lock for lock in found if lock is not None)


def locks_named(text: str) -> tuple[Lock, ...]:
    """The locks that the engine's refusal names: `the stack is currently locked by 1 lock(s) …`."""
    if "currently locked by" not in text:
        return ()
    return tuple(
        Lock(user=match["user"], host=match["host"], pid=int(match["pid"]), since=match["since"])
        for match in _LOCKED.finditer(text)
    )


def _read(path: Path, *, is_of_own_disk: bool) -> Lock | None:
    try:
        row = parsed_object(path.read_bytes())
        return Lock(
            user=row.text("username"),
            host=row.text("hostname"),
            pid=row.whole("pid", high=LARGEST_PID),
            since=row.text_or_none("timestamp") or "",
            is_of_own_disk=is_of_own_disk,
        )
    except (OSError, NotAsExpected):
        return None


def _instant(text: str) -> datetime | None:
    """The time that the engine wrote, RFC 3339 with nanoseconds; None for any other text."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
