"""The host-wide limit of inotify instances: raised for many machines, restored after the last."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Each machine's systemd takes about 7.5 of root's instances (measured 2026-11); many hosts
# allow 128, and from the 17th machine on units fail with "Too many open files".
INSTANCES_PER_MACHINE = 8
_ROOM_AHEAD_MACHINES = 4
_RAISED_LIMIT = 8192


@dataclass(frozen=True, kw_only=True)
class InotifyLimit:
    """The limit's file, and the file that keeps its old value until that is restored."""

    limit: Path = Path("/proc/sys/fs/inotify/max_user_instances")
    before: Path = Path("/run/clusterctl-inotify-before")

    def make_room(self, machines: int) -> str | None:
        """Raise the limit if so many machines, and a few that may start at once, need more.

        Returns a sentence for a person if it was raised, else None.
        """
        present = int(self.limit.read_text())
        if present >= instances_needed(machines + _ROOM_AHEAD_MACHINES):
            return None
        if not self.before.exists():
            self.before.write_text(f"{present}\n")
        self.limit.write_text(f"{_RAISED_LIMIT}\n")
        return (
            f"fs.inotify.max_user_instances of this computer raised from {present} to {_RAISED_LIMIT} "
            "for many machines; put back after the last"
        )

    def put_back(self) -> None:
        """Restore the old value, if it was raised and nobody has changed it since."""
        try:
            before = self.before.read_text()
        except FileNotFoundError:
            return
        if int(self.limit.read_text()) == _RAISED_LIMIT:
            self.limit.write_text(before)
        self.before.unlink(missing_ok=True)


def instances_needed(machines: int) -> int:
    """How many inotify instances root needs for so many machines."""
    return INSTANCES_PER_MACHINE * machines
