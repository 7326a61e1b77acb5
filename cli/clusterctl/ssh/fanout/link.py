"""One logged-in connection of the fan-out: a libssh2 session, its socket, and the proxy that carries it."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import socket
import struct
import termios
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.event_loop import NEVER, Waiting
from clusterctl.ssh.fanout.libssh2 import (
    AGAIN,
    BLOCKED_READING,
    BLOCKED_WRITING,
    BUFFER_BYTES,
    Channel,
    Libssh2Error,
    Session,
)
from clusterctl.ssh.target import Target

if TYPE_CHECKING:
    from clusterctl.ssh.proxy import Proxy

QUESTIONS = 3
"""Unanswered keepalives until a silent node counts as lost, as in OpenSSH."""


class Silent(Exception):
    """Nothing was heard for longer than a living node takes to answer."""


class Late(Exception):
    """The deadline has passed."""


class Link:
    """A connection to one node, shared by the steps of a command; used by one thread at a time."""

    def __init__(self, target: Target, connection: socket.socket, proxy: Proxy | None, *, silence_s: float) -> None:
        connection.setblocking(False)
        self.target = target
        self.socket = connection
        self.session = Session(connection)
        self.buffer = ctypes.create_string_buffer(BUFFER_BYTES)
        self.heard_at = time.monotonic()
        self._proxy = proxy
        self._silence_s = silence_s
        self._asks_at = NEVER
        self._ahead_bytes = 0
        self._ahead: Channel | None = None
        self._is_hung_up = False

    def opened(self, window_bytes: int, ends_at: float = NEVER) -> Generator[Waiting, bool, Channel]:
        """A channel with about this window: the one opened ahead, else a new one. Raises Late, Libssh2Error."""
        if self._ahead_bytes:
            size, ahead = self._ahead_bytes, self._ahead
            self._ahead_bytes, self._ahead = 0, None
            channel = ahead or (yield from self._new_channel(size, ends_at))
            if window_bytes / 4 <= size <= window_bytes * 2:
                return channel
            yield from self.until_done(channel.close, ends_at)
            channel.free()
        return (yield from self._new_channel(window_bytes, ends_at))

    def open_ahead(self, window_bytes: int) -> None:
        """Asks for the next command's channel, to save that command a round trip; returns at once."""
        self._ahead_bytes = window_bytes
        self._hear_of_ahead()

    def until_done(
        self, step: Callable[[], int], ends_at: float = NEVER, *, is_watched: bool = False
    ) -> Generator[Waiting, bool, int]:
        """What `step` returns once it does not have to be called again. Raises Late, Silent, Libssh2Error."""
        while (result := step()) == AGAIN:
            yield from self.until_ready(ends_at, is_watched=is_watched)
        return result

    def until_ready(self, ends_at: float = NEVER, *, is_watched: bool = False) -> Generator[Waiting, bool, None]:
        """Waits for what the session's last call was blocked on. Raises Late, and Silent when `is_watched`."""
        directions = self.session.blocked_directions() or BLOCKED_READING
        until = min(ends_at, self._asks_at) if is_watched else ends_at
        has_come = yield Waiting(
            descriptor=self.socket.fileno(),
            for_reading=bool(directions & BLOCKED_READING),
            for_writing=bool(directions & BLOCKED_WRITING),
            until=until,
        )
        self.note(has_come, ends_at, is_watched=is_watched)

    def note(self, has_come: bool, ends_at: float = NEVER, *, is_watched: bool = False) -> bool:
        """Notes a sign of life; True if the node was asked for one now. Raises Late, and Silent when `is_watched`."""
        now = time.monotonic()
        if has_come:
            self.heard_at = now
            return False
        if now >= ends_at:
            raise Late
        if is_watched and now >= self._asks_at:
            if now - self.heard_at >= self._silence_s:
                raise Silent
            self._asks_at = now + self._silence_s / QUESTIONS
            self.session.ask_for_a_sign_of_life()
            return True
        return False

    def watch(self) -> None:
        """From now on the node is asked for signs of life."""
        self.session.keep_alive_every(max(1, int(self._silence_s / QUESTIONS)))
        self.heard_at = time.monotonic()
        self._asks_at = self.heard_at + self._silence_s / QUESTIONS

    @property
    def asks_at(self) -> float:
        """When the node is to be asked next, on the monotonic clock."""
        return self._asks_at

    def is_quiet(self) -> bool:
        """Whether an idle connection has received nothing: what comes unasked is mostly the connection's end."""
        self._hear_of_ahead()
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)

    def is_taken(self) -> bool:
        """Whether the other side's kernel, or the proxy, has received all that was sent."""
        unsent: int = struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)))[0]
        return unsent == 0

    def take_back(self) -> None:
        """From now on `close` drops what the other side has not acknowledged, and resets the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # tcp(7), socket(7)

    def _new_channel(self, window_bytes: int, ends_at: float) -> Generator[Waiting, bool, Channel]:
        while (channel := self.session.open_channel(window_bytes)) is None:
            yield from self.until_ready(ends_at)
        return channel

    def _hear_of_ahead(self) -> None:
        """Takes the answer to `open_ahead` if it has come; a refusal is left to the next command, which asks again."""
        if not self._ahead_bytes or self._ahead is not None:
            return
        try:
            self._ahead = self.session.open_channel(self._ahead_bytes)
        except Libssh2Error:
            self._ahead_bytes = 0

    def descriptors(self) -> set[int]:
        """The file descriptors that must stay open for this connection to live."""
        return {self.socket.fileno()} | (set() if self._proxy is None else self._proxy.descriptors())

    def complaint(self) -> str | None:
        """What the proxy said when it ended; None without one, and while it runs."""
        return None if self._proxy is None else self._proxy.complaint(wait_s=0)

    def await_proxy_end(self, most_s: float) -> Generator[Waiting, bool, None]:
        """Returns when the proxy has ended, or after this long; at once if there is no proxy that runs."""
        ending = None if self._proxy is None else self._proxy.end_descriptor()
        if ending is None:
            return
        try:
            yield Waiting(descriptor=ending, for_reading=True, until=time.monotonic() + most_s)
            yield Waiting(until=0.0)  # the loop forgets the descriptor before its number comes again
        finally:
            os.close(ending)

    def hang_up(self) -> None:
        """Ends the connection, not waiting for the proxy's end; never raises."""
        if self._is_hung_up:
            return
        self._is_hung_up = True
        with contextlib.suppress(Libssh2Error):
            self.session.disconnect()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.session.free()
        self.socket.close()

    def close(self) -> None:
        """Ends the connection and the proxy; never raises."""
        self.hang_up()
        if self._proxy is not None:
            self._proxy.close()


def lost(link: Link, error: Exception) -> NodeFailure:
    """The failure of a connection that broke or fell silent."""
    if isinstance(error, Silent):
        return NodeFailure("lost", f"{link.target.name} has given no sign of life for too long", phase="command")
    return NodeFailure("lost", f"the connection to {link.target.name} broke ({error})", phase="command")
