"""What comes through the channel of a running command: its output, and how it ended."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator

import paramiko

CHUNK_BYTES = 64 * 1024

ENDING_S = 0.5
"""How long to wait for the thread of a connection that may have broken."""

Sink = Callable[[bytes], None]
IsSilent = Callable[[], bool]
"""Whether the node gives no sign of life any more."""


def drained(
    channel: paramiko.Channel, on_stdout: Sink, on_stderr: Sink, ends_at: float | None, is_silent: IsSilent
) -> int | None:
    """Gives all output to the sinks; returns the exit code, or None after a signal, since paramiko does not tell which.

    Raises TimeoutError, and EOFError when the connection was lost.
    """
    for is_stderr, chunk in _chunks(channel, ends_at, is_silent):
        (on_stderr if is_stderr else on_stdout)(chunk)
    while not channel.status_event.wait(_left_s(ends_at)):
        _hear(is_silent)
    if channel.exit_status >= 0:
        return channel.exit_status
    transport = channel.get_transport()
    transport.join(ENDING_S)  # where the connection broke its thread ends right after the channel
    if not transport.is_alive():
        raise EOFError
    return None


def _chunks(channel: paramiko.Channel, ends_at: float | None, is_silent: IsSilent) -> Iterator[tuple[bool, bytes]]:
    """(is stderr, bytes) until both are at their end. Raises TimeoutError, EOFError on silence;
    ends early on a broken connection."""
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    while True:
        is_ended = channel.eof_received or channel.closed
        while channel.recv_ready():
            yield False, channel.recv(CHUNK_BYTES)
        while channel.recv_stderr_ready():
            yield True, channel.recv_stderr(CHUNK_BYTES)
        if is_ended:
            return
        if not poll.poll(_left_s(ends_at) * 1000):
            _hear(is_silent)


def _hear(is_silent: IsSilent) -> None:
    """Raises EOFError when the node has given no sign of life for too long."""
    if is_silent():
        raise EOFError


def _left_s(ends_at: float | None) -> float:
    """The time that is left, at most a second, so that Ctrl-C is heard. Raises TimeoutError when nothing is left."""
    if ends_at is None:
        return 1.0
    left_s = ends_at - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return min(left_s, 1.0)
