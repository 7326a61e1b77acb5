"""The beginning of what a command with input says on stderr: in it stands its group, which is not for the person."""

from __future__ import annotations

from clusterctl.ssh.guard import Told, group_in

WITHIN_BYTES = 64 * 1024
"""A login shell's own greeting comes before it; after more than that it is not looked for any longer."""


class GroupMark:
    """Keeps stderr back until the group is told."""

    def __init__(self, *, is_awaited: bool) -> None:
        self.is_awaited = is_awaited
        self.told: Told | None = None
        self._head = b""

    def passed(self, chunk: bytes) -> bytes:
        """What of stderr goes on to the person, now that this has come."""
        if not self.is_awaited:
            return chunk
        self._head += chunk
        if (found := group_in(self._head)) is not None:
            self.told, self._head = found
        elif len(self._head) <= WITHIN_BYTES:
            return b""
        return self.rest()

    def rest(self) -> bytes:
        """What was kept back, when nothing more is awaited."""
        self.is_awaited = False
        head, self._head = self._head, b""
        return head
