"""One command on a link, from its start to its exit code, its output passed on as it comes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import Protocol

from clusterctl_infra.errors import ClusterctlError

from clusterctl.ssh.command import Command
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.command_input import Input
from clusterctl.ssh.fanout.event_loop import NEVER, Stopped, Waiting
from clusterctl.ssh.fanout.input_feed import InputFeed
from clusterctl.ssh.fanout.libssh2 import BROKEN, STDERR, STDOUT, Channel, Libssh2Error
from clusterctl.ssh.fanout.link import Late, Link, Silent, lost
from clusterctl.ssh.fanout.watch import Watch
from clusterctl.ssh.results import signal_exit_code
from clusterctl.ssh.watchdog import MOST_S, ReportedIds, first_input, group_in, guarded, watcher, with_input

CHUNKS_A_TURN = 16
LAST_WORDS_S = 0.8
"""How long to wait for the last output of a command that was ended."""
WINDOW_BYTES_TOGETHER = 64 * 1024 * 1024
"""How much all nodes together may send before anybody reads it: this bounds our memory."""

ExitCode = tuple[int, str | None]
"""The exit code, 128 + the signal's number when a signal ended it; and the signal's name."""
Another = Callable[[float], Generator[Waiting, bool, Link]]
"""Makes another connection to the same node, by a deadline on the monotonic clock. Raises NodeFailure."""


class Outlet(Protocol):
    """Where the output goes."""

    def has_room(self) -> bool:
        """Whether more may be put now; if not, the loop is woken when it may."""

    def put(self, stream: int, chunk: bytes) -> None:
        """Takes what came on STDOUT or STDERR."""


def window_bytes(nodes: int) -> int:
    """How many bytes each of so many nodes may send ahead of our reading."""
    return max(64 * 1024, min(2 * 1024 * 1024, WINDOW_BYTES_TOGETHER // max(1, nodes)))


NEAR_S = 0.2
"""A node near by answers within this time."""


def command_text(command: Command, *, has_input: bool, silence_s: float) -> bytes:
    """The text that a node's shell runs: the same for all nodes of a command. Pure."""
    text = with_input if has_input else guarded
    return text(command.line, environment=command.environment, is_sudo=command.is_sudo, silence_s=silence_s)


class CommandRun:
    """The steps of one command; `start` first, then `to_its_end`."""

    def __init__(
        self,
        link: Link,
        command: Command,
        outlet: Outlet,
        stdin: Input | None,
        *,
        text: bytes,
        another: Another,
        silence_s: float,
        window: int,
    ) -> None:
        self._link = link
        self._command = command
        self._text = text
        self._outlet = outlet
        self._feed = InputFeed(link, stdin)
        self._another = another
        self._silence_s = silence_s
        self._window = window
        self._has_input = stdin is not None
        self._mark = GroupMark(is_awaited=stdin is not None)
        self._watch: Watch | None = None
        self._link_beside: Link | None = None
        self._channel: Channel

    def start(self, ends_at: float) -> Generator[Waiting, bool, None]:
        """Starts the command. Raises NodeFailure."""
        yield from self.open(ends_at)
        yield from self.ask(ends_at)

    def open(self, ends_at: float) -> Generator[Waiting, bool, None]:
        """Opens the command's channel. Raises NodeFailure: then nothing has run."""
        try:
            self._channel = yield from self._link.opened(self._window, ends_at)
        except Late as e:
            message = f"{self._link.target.name} did not open a session in time"
            raise NodeFailure("timeout", message, phase="session") from e
        except Libssh2Error as e:
            raise refusal(self._link, e) from e

    def ask(self, ends_at: float, *, taken_by: float = NEVER) -> Generator[Waiting, bool, None]:
        """Asks the node to start the command. Raises NodeFailure: nothing has run then, unless its phase is "command".

        A node that has not even received the request by `taken_by` is not waited for any longer.
        """
        link, text = self._link, self._text
        try:
            try:
                yield from link.until_done(lambda: self._channel.execute(text), min(ends_at, taken_by))
            except Late as e:
                if not link.is_taken():
                    link.take_back()
                    raise NodeFailure("timeout", f"{link.target.name} takes nothing", phase="session") from e
                yield from link.until_done(lambda: self._channel.execute(text), ends_at)
            yield from self._feed.give_before(self._first_input(), self._channel, ends_at)
        except Late as e:
            message = f"{link.target.name} did not say in time whether the command has started"
            raise NodeFailure("lost", message, phase="command") from e
        except Libssh2Error as e:
            raise refusal(self._link, e) from e
        if not self._has_input:
            self._watch = Watch(link, self._channel, silence_s=self._silence_s)

    def _first_input(self) -> bytes:
        return first_input(environment=self._command.environment, is_sudo=self._command.is_sudo)

    def to_its_end(self) -> Generator[Waiting, bool, ExitCode]:
        """The exit code, once the command has ended. Raises NodeFailure when there is none, as after its timeout.

        A command that reaches its timeout is ended. Raises OSError, ClusterctlError where its input was lost.
        """
        timeout_s = self._command.timeout_s
        ends_at = NEVER if timeout_s is None else time.monotonic() + timeout_s
        try:
            return (yield from self._until_closed(ends_at))
        except Late as e:
            yield from self._end(LAST_WORDS_S)
            message = f"{self._link.target.name}: the command still ran after {timeout_s:g} s and was ended"
            raise NodeFailure("timeout", message, phase="command") from e
        except (Libssh2Error, Silent) as e:
            raise lost(self._link, e) from e
        except Stopped:
            yield from self._end(MOST_S)
            raise
        except (OSError, ClusterctlError):  # its input is lost: it must not take that for the end of its input
            yield from self._end(LAST_WORDS_S)
            raise

    def give_up_channel(self) -> Generator[Waiting, bool, bool]:
        """Closes the command's channel; True when the link can take another command."""
        ends_at = time.monotonic() + LAST_WORDS_S
        try:
            if self._watch is not None and self._watch.channel is not self._channel:
                yield from self._watch.end(ends_at)
            yield from self._link.until_done(self._channel.close, ends_at)
            self._channel.free()
            self._link.open_ahead(self._window)
        except (Libssh2Error, Late):
            return False
        return True

    def let_go(self) -> None:
        """Ends the connection that was made for the watcher, if one was; never raises."""
        if self._link_beside is not None:
            self._link_beside.close()

    def _until_closed(self, ends_at: float) -> Generator[Waiting, bool, ExitCode]:
        link, channel = self._link, self._channel
        while True:
            yield from self._guard_beside(ends_at)
            is_hungry = yield from self._feed.give(self._channel, ends_at)
            if self._watch is not None:
                yield from self._watch.beat(ends_at)
            # Last before the wait: all of the above may read from the socket what comes for this channel, too, and the
            # socket does not report that again.
            is_more = self._drain()
            if channel.is_at_end():
                break
            yield from self._wait(is_more or is_hungry or self._is_guard_due, ends_at)
        self._pass_on(STDERR, self._mark.rest())
        yield from link.until_done(channel.wait_closed, ends_at, is_watched=True)
        name = channel.exit_signal()
        return (channel.exit_status(), None) if name is None else (signal_exit_code(name), name)

    def _wait(self, is_more: bool, ends_at: float) -> Generator[Waiting, bool, None]:
        has_room = self._outlet.has_room()
        if not has_room:
            self._link.heard_at = time.monotonic()  # it is we who do not listen
        beat_at = NEVER if self._watch is None else self._watch.beat_at
        until = 0.0 if is_more and has_room else min(ends_at, self._link.asks_at, beat_at)
        has_come = yield self._waiting(has_room, until)
        if self._link.note(has_come, ends_at, is_watched=True):
            # Waits for the answer, which a near node gives at once: drained before a wait, it would go unnoticed.
            has_come = yield self._waiting(has_room, min(ends_at, time.monotonic() + NEAR_S))
            self._link.note(has_come)

    def _waiting(self, has_room: bool, until: float) -> Waiting:
        return Waiting(
            descriptor=self._link.socket.fileno() if has_room else -1,
            for_reading=has_room,
            for_waking=self._feed.is_open or not has_room,
            until=until,
        )

    def _drain(self) -> bool:
        """Passes on what is there; True when there may be more."""
        for _ in range(CHUNKS_A_TURN):
            has_read = False
            for stream in (STDOUT, STDERR):
                if not self._outlet.has_room():
                    return True
                chunk = self._channel.read(stream, self._link.buffer)
                if chunk:
                    has_read = True
                    self._pass_on(stream, chunk)
            if not has_read and not self._channel.has_unread():
                return False
        return True

    def _pass_on(self, stream: int, chunk: bytes) -> None:
        if stream == STDERR:
            chunk = self._mark.passed(chunk)
        if chunk:
            self._outlet.put(stream, chunk)

    @property
    def _is_guard_due(self) -> bool:
        """Whether the command has reported its group, and nothing watches it yet."""
        return self._mark.reported is not None and self._watch is None

    def _guard_beside(self, ends_at: float) -> Generator[Waiting, bool, None]:
        """Opens the watcher's own channel once the command has reported its group."""
        reported = self._mark.reported
        if reported is None or not self._is_guard_due:
            return
        text = watcher(reported, is_sudo=self._command.is_sudo, silence_s=self._silence_s)
        link = self._link
        try:
            channel = yield from started(link, text, self._window, ends_at)
        except Libssh2Error as e:
            if e.code in BROKEN:
                raise
            # The server allows only one session for each connection.
            link = self._link_beside = self._link_beside or (yield from self._another(ends_at))
            channel = yield from started(link, text, self._window, ends_at)
            self._link.heard_at = time.monotonic()  # it is we who have not listened
        self._watch = Watch(link, channel, silence_s=self._silence_s)

    def _end(self, wait_s: float) -> Generator[Waiting, bool, None]:
        """Has the watcher end the command, and waits a little for what the command still prints."""
        ends_at = time.monotonic() + wait_s
        self._feed.stop()
        with contextlib.suppress(Late, Silent, Libssh2Error, NodeFailure, Stopped):
            while self._watch is None and self._mark.is_awaited and not self._channel.is_at_end():
                self._drain()
                yield from self._guard_beside(ends_at)
                if self._watch is None:
                    yield from self._wait(False, ends_at)
            yield from self._guard_beside(ends_at)
            if self._watch is not None:
                yield from self._watch.end_command(ends_at)
                yield from self._until_closed(ends_at)


def refusal(link: Link, error: Libssh2Error) -> NodeFailure:
    """The failure of a channel that was not opened, or of a command that was not started on it."""
    name = link.target.name
    # libssh2's errors of the socket mean a broken connection; all others are refusals.
    if error.code in BROKEN:
        return NodeFailure("lost", f"the connection to {name} broke ({error})", phase="session")
    return NodeFailure("session", f"{name} opened no session ({error})", phase="session")


def started(link: Link, text: bytes, window_bytes: int, ends_at: float) -> Generator[Waiting, bool, Channel]:
    """Starts a command of ours, and returns its channel. Raises Late, Libssh2Error."""
    channel = yield from link.opened(window_bytes, ends_at)
    yield from link.until_done(lambda: channel.execute(text), ends_at)
    return channel


WITHIN_BYTES = 64 * 1024
"""How much of stderr is searched for the group's line; the greeting of a login shell may come before it."""


class GroupMark:
    """Holds stderr back until the command has reported its group."""

    def __init__(self, *, is_awaited: bool) -> None:
        self.is_awaited = is_awaited
        self.reported: ReportedIds | None = None
        self._head = b""

    def passed(self, chunk: bytes) -> bytes:
        """Takes a chunk of stderr; returns what may go on to the person now."""
        if not self.is_awaited:
            return chunk
        self._head += chunk
        if (found := group_in(self._head)) is not None:
            self.reported, self._head = found
        elif len(self._head) <= WITHIN_BYTES:
            return b""
        return self.rest()

    def rest(self) -> bytes:
        """What was held back; from now on nothing is."""
        self.is_awaited = False
        head, self._head = self._head, b""
        return head
