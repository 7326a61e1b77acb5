"""The beats that a command's watcher waits for, and the channel that they go to."""

from __future__ import annotations

import time
from collections.abc import Generator

from clusterctl.ssh.fanout.event_loop import NEVER, Waiting
from clusterctl.ssh.fanout.libssh2 import AGAIN, BLOCKED_WRITING, STDERR, STDOUT, Channel
from clusterctl.ssh.fanout.link import Link
from clusterctl.ssh.watchdog import BEAT, BEATS


class Watch:
    """One watcher: on the command's own channel, on one beside it, or on another connection."""

    def __init__(self, link: Link, channel: Channel, *, silence_s: float) -> None:
        self.link = link
        self.channel = channel
        self._every_s = silence_s / BEATS
        self.beat_at = time.monotonic() + self._every_s
        """When the next beat is due, on the monotonic clock."""

    def beat(self, ends_at: float) -> Generator[Waiting, bool, None]:
        """Sends the watcher a beat, if one is due. Raises Late, Silent, Libssh2Error."""
        if time.monotonic() < self.beat_at:
            return
        self.beat_at = time.monotonic() + self._every_s
        yield from written(self.link, self.channel, BEAT, ends_at)

    def end_command(self, ends_at: float) -> Generator[Waiting, bool, None]:
        """Has the watcher end the command. Raises Late, Libssh2Error."""
        self.beat_at = NEVER
        yield from self.link.until_done(self.channel.send_eof, ends_at)

    def end(self, ends_at: float) -> Generator[Waiting, bool, None]:
        """Lets the watcher see that the command has ended, and waits for its own end. Raises Late, Libssh2Error."""
        link, channel = self.link, self.channel
        yield from link.until_done(channel.send_eof, ends_at)
        while not channel.is_at_end():
            for stream in (STDOUT, STDERR):
                channel.read(stream, link.buffer)
            if not channel.is_at_end():
                yield from link.until_ready(ends_at)
        yield from link.until_done(channel.wait_closed, ends_at)
        yield from link.until_done(channel.close, ends_at)
        channel.free()


def written(link: Link, channel: Channel, chunk: bytes, ends_at: float) -> Generator[Waiting, bool, int]:
    """Sends what the node takes now; returns the number of bytes, maybe 0. Waits until a half-sent packet is out."""
    while (taken := channel.write(chunk)) == AGAIN:
        if not link.session.blocked_directions() & BLOCKED_WRITING:
            return 0
        yield from link.until_ready(ends_at, is_watched=True)
    return taken
