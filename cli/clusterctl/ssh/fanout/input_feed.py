"""What a command reads, on its way into the command's channel."""

from __future__ import annotations

from collections.abc import Generator

from clusterctl.ssh.fanout.command_input import Input
from clusterctl.ssh.fanout.event_loop import Waiting
from clusterctl.ssh.fanout.libssh2 import BROKEN, Channel, Libssh2Error
from clusterctl.ssh.fanout.link import Link
from clusterctl.ssh.fanout.watch import written

CHUNKS_A_TURN = 16


class InputFeed:
    """One command's share of the input, given as the node takes it."""

    def __init__(self, link: Link, source: Input | None) -> None:
        self._link = link
        self._source = source
        self._offset = 0
        self.is_open = source is not None
        """Whether there may be more to give."""

    def stop(self) -> None:
        """Gives nothing more, not even an end."""
        self.is_open = False

    def give_before(self, text: bytes, channel: Channel, ends_at: float) -> Generator[Waiting, bool, None]:
        """Gives what the shell reads before the watcher or the command reads anything. Raises Late, Libssh2Error."""
        left = text
        try:
            while left:
                taken = yield from written(self._link, channel, left, ends_at)
                left = left[taken:]
                if taken == 0:
                    yield from self._link.until_ready(ends_at)
        except Libssh2Error as e:
            if e.code in BROKEN:
                raise
            # The command has ended already, as sudo does for a user who may not use it: its exit code says so.

    def give(self, channel: Channel, ends_at: float) -> Generator[Waiting, bool, bool]:
        """Gives what is there; True when the node would take more at once.

        Raises Late, Silent, Libssh2Error, and OSError, ClusterctlError where the input is lost.
        """
        if self._source is None or not self.is_open:
            return False
        try:
            for _ in range(CHUNKS_A_TURN):
                chunk = self._source.read(self._offset)
                if chunk is None:
                    return False
                if not chunk:
                    self.is_open = False
                    yield from self._link.until_done(channel.send_eof, ends_at, is_watched=True)
                    return False
                taken = yield from written(self._link, channel, chunk, ends_at)
                if taken == 0:
                    return False
                self._offset += taken
                self._source.taken(self._offset)
        except Libssh2Error as e:
            if e.code in BROKEN:
                raise
            self.is_open = False  # the command ended without reading it all
            return False
        return True
