"""A start of the engine, as the file of a run keeps it: proof that a lock's process was started on this computer."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterctl.system.pid_namespace import pid_namespace
from clusterctl.system.processes import boot_id, find_process, is_alive

MACHINE_ID = Path("/etc/machine-id")
CLOCK_SLACK = timedelta(seconds=5)
LONGEST_UNTIL_LOCKED = timedelta(minutes=10)
"""How long after its start an engine may take the lock; a backend far away answers late."""


@dataclass(frozen=True, kw_only=True)
class EngineStart:
    """One start of the engine."""

    pid: int
    ticks: int
    """When it started, in clock ticks after boot; 0 where /proc does not tell."""
    at: str
    host: str
    boot: str
    machine: str
    pids: str = ""
    """The pid namespace that its number counts in; empty in the file of an older clusterctl."""

    @property
    def is_gone(self) -> bool:
        """Whether it certainly ran on this computer and does not any more: no process outlives a boot."""
        if self.boot and self.boot == boot_id():
            if self.pids not in ("", pid_namespace()):
                return False  # in another container: it is not seen from here
            return not is_alive(self.pid, self.ticks)
        return bool(self.machine) and self.machine == machine_id()

    def took(self, *, host: str, pid: int, since: datetime) -> bool:
        """Whether a lock that names this host, process and moment is the one that this start took."""
        at = datetime.fromisoformat(self.at)
        return (host, pid) == (self.host, self.pid) and at - CLOCK_SLACK <= since <= at + LONGEST_UNTIL_LOCKED


def engine_start(pid: int) -> EngineStart:
    """The record of the process `pid`, which has just been started."""
    process = find_process(pid)
    return EngineStart(
        pid=pid,
        ticks=0 if process is None else process.start_ticks,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=socket.gethostname(),
        boot=boot_id(),
        machine=machine_id(),
        pids=pid_namespace(),
    )


def machine_id() -> str:
    """What tells this computer from all others, machine-id(5); empty where it has none."""
    try:
        return MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
