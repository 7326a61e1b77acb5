"""What goes through the channel of a running command: stdin, output, and how it ended."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

import paramiko

from clusterctl.ssh.results import signal_exit_code
from clusterctl.ssh.single.watchful_transport import exit_signal, is_silent

CHUNK_BYTES = 64 * 1024

Sink = Callable[[bytes], None]


def feed(channel: paramiko.Channel, stdin: bytes | IO[bytes] | None) -> None:
    """Gives `stdin` to the command and closes it; what could block is given from a thread of its own."""
    if stdin is None or stdin == b"":
        channel.shutdown_write()
        return
    threading.Thread(target=_pump, args=(channel, stdin), daemon=True, name="ssh stdin").start()


def drained(
    channel: paramiko.Channel, on_stdout: Sink, on_stderr: Sink, ends_at: float | None
) -> tuple[int, str | None]:
    """Exit code and ending signal, the output given to the sinks. Raises TimeoutError, EOFError when it was lost."""
    for is_stderr, chunk in chunks(channel, ends_at):
        (on_stderr if is_stderr else on_stdout)(chunk)
    return ended(channel, ends_at)


def ended(channel: paramiko.Channel, ends_at: float | None) -> tuple[int, str | None]:
    """Exit code and ending signal once all output was read. Raises TimeoutError, EOFError when there is none."""
    while not channel.status_event.wait(_left_s(ends_at)):
        _hear(channel)
    name = exit_signal(channel)
    if name is not None:
        return signal_exit_code(name), name
    if channel.exit_status < 0:
        raise EOFError
    return channel.exit_status, None


def chunks(channel: paramiko.Channel, ends_at: float | None) -> Iterator[tuple[bool, bytes]]:
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
            _hear(channel)


def _hear(channel: paramiko.Channel) -> None:
    """Raises EOFError when the node has given no sign of life for too long."""
    if is_silent(channel):
        raise EOFError


def _pump(channel: paramiko.Channel, stdin: bytes | IO[bytes]) -> None:
    try:
        if isinstance(stdin, bytes):
            channel.sendall(stdin)
        else:
            while chunk := os.read(stdin.fileno(), CHUNK_BYTES):
                channel.sendall(chunk)
        channel.shutdown_write()
    except (OSError, EOFError, paramiko.SSHException):
        return  # the command ended without reading it all


def _left_s(ends_at: float | None) -> float:
    """What is left, at most a second at a time so that Ctrl-C is heard. Raises TimeoutError when nothing is."""
    if ends_at is None:
        return 1.0
    left_s = ends_at - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return min(left_s, 1.0)
