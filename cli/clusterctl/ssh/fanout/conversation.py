"""A conversation with one node, as steps of a task: hears lines as they come, then runs commands, on one connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Self

from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.command_input import BytesInput
from clusterctl.ssh.fanout.command_run import CHUNKS_A_TURN, NEAR_S, CommandRun, command_text, refusal, started
from clusterctl.ssh.fanout.event_loop import Waiting
from clusterctl.ssh.fanout.libssh2 import STDERR, STDOUT, Channel, Libssh2Error
from clusterctl.ssh.fanout.link import Late, Link, Silent, lost
from clusterctl.ssh.fanout.reaching import another_link, let_go, reach
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.target import Target

WINDOW_BYTES = 256 * 1024
KEPT_BYTES = 1024 * 1024
"""How much is kept of each stream of a command."""
LONGEST_LINE_BYTES = 1024 * 1024
"""A longer line is passed on in pieces, so that a node that never writes a newline does not fill our memory."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The exit code and output of a command that ran."""

    exit_code: int
    """128 + the signal's number when a signal ended it."""
    stdout: bytes
    stderr: bytes


class Conversation:
    """One logged-in connection; each method is a part of a task on an event loop."""

    def __init__(self, link: Link, keys: LoginKeys, deadlines: Deadlines) -> None:
        self._link = link
        self._keys = keys
        self._deadlines = deadlines

    @classmethod
    def opened(cls, target: Target, keys: LoginKeys, deadlines: Deadlines) -> Generator[Waiting, bool, Self]:
        """A connection to the target. Raises NodeFailure."""
        link = yield from reach(target, keys, deadlines, None)
        return cls(link, keys, deadlines)

    def hear_lines(
        self, line: str, hear: Callable[[str], None], *, is_enough: Callable[[], bool]
    ) -> Generator[Waiting, bool, None]:
        """Gives `hear` each line that the command prints, until the command ends or `is_enough()`.

        `is_enough` is asked whenever the loop is woken, too. The command's input stays open until then. Raises
        NodeFailure, and what `hear` raises.
        """
        link, lines = self._link, Lines(hear)
        channel = yield from self._begun(line)
        try:
            while not is_enough():
                is_more = _drain(channel, link, lines)
                if channel.is_at_end():
                    lines.finish()
                    break
                if not is_enough():
                    yield from _heard(link, 0.0 if is_more else link.asks_at)
            yield from link.until_done(channel.close, time.monotonic() + self._deadlines.session_s)
            channel.free()
        except (Libssh2Error, Silent, Late) as e:
            raise lost(link, e) from e

    def run(self, command: Command, stdin: bytes) -> Generator[Waiting, bool, Answer]:
        """Runs the command and returns its answer. Raises NodeFailure when it did not end, or not in time."""
        kept = _Kept()
        run = CommandRun(
            self._link,
            command,
            kept,
            BytesInput(stdin),
            text=command_text(command, has_input=True, silence_s=self._deadlines.silence_s),
            another=lambda ends_at: another_link(self._link.target, self._keys, self._deadlines, ends_at),
            silence_s=self._deadlines.silence_s,
            window=WINDOW_BYTES,
        )
        try:
            yield from run.start(time.monotonic() + self._deadlines.session_s)
            exit_code, _ = yield from run.to_its_end()
            yield from run.give_up_channel()
        finally:
            run.let_go()
        return Answer(exit_code=exit_code, stdout=bytes(kept.streams[STDOUT]), stderr=bytes(kept.streams[STDERR]))

    def end(self) -> Generator[Waiting, bool, None]:
        """Closes the connection, and lets the other tasks run while its proxy ends."""
        yield from let_go(self._link)

    def cut(self) -> None:
        """Closes the connection at once; never raises."""
        self._link.close()

    def _begun(self, line: str) -> Generator[Waiting, bool, Channel]:
        link, ends_at = self._link, time.monotonic() + self._deadlines.session_s
        try:
            return (yield from started(link, line.encode(), WINDOW_BYTES, ends_at))
        except Late as e:
            raise NodeFailure("timeout", f"{link.target.name} did not open a session in time", phase="session") from e
        except Libssh2Error as e:
            raise refusal(link, e) from e


def _heard(link: Link, until: float) -> Generator[Waiting, bool, None]:
    """Waits for what comes next, or to be woken. Raises Silent, Libssh2Error."""
    has_come = yield _waiting(link, until)
    if link.note(has_come, is_watched=True):
        # Waits for the answer, which a near node gives at once: drained before a wait, it would go unnoticed.
        link.note((yield _waiting(link, time.monotonic() + NEAR_S)))


def _waiting(link: Link, until: float) -> Waiting:
    return Waiting(descriptor=link.socket.fileno(), for_reading=True, for_waking=True, until=until)


def _drain(channel: Channel, link: Link, lines: Lines) -> bool:
    """Passes on what has come on stdout, and drops stderr; True when there may be more."""
    for _ in range(CHUNKS_A_TURN):
        stdout = channel.read(STDOUT, link.buffer)
        stderr = channel.read(STDERR, link.buffer)
        lines.feed(stdout)
        if not stdout and not stderr and not channel.has_unread():
            return False
    return True


class Lines:
    """Cuts what comes into lines; a line that is too long is passed on in pieces."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            self._hear(line.decode(errors="replace"))
        if len(self._rest) > LONGEST_LINE_BYTES:
            self.finish()

    def finish(self) -> None:
        rest, self._rest = self._rest, b""
        if rest:
            self._hear(rest.decode(errors="replace"))


@dataclass
class _Kept:
    """The output of a command, kept up to a bound."""

    streams: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))

    def has_room(self) -> bool:
        return True

    def put(self, stream: int, chunk: bytes) -> None:
        kept = self.streams[stream == STDERR]
        kept += chunk[: KEPT_BYTES - len(kept)]
