"""A transport that also hears which signal ended a command, which paramiko leaves out.

It reaches into paramiko (`_channel_handler_table`, `_handle_request`; the same from 3.5 to 4.0): the message
that tells the signal is dropped before any public method sees it.
"""

from __future__ import annotations

import signal
from typing import Any  # paramiko's inner parts, which its stubs leave out

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST
from paramiko.message import Message


class SignalAwareTransport(paramiko.Transport):
    """Sets `exit_signal` on channels whose command was ended by a signal (RFC 4254, 6.10)."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        table: dict[int, Any] = paramiko.Transport.__dict__["_channel_handler_table"]
        self._channel_handler_table = {**table, MSG_CHANNEL_REQUEST: _handle_request}


def exit_signal(channel: paramiko.Channel) -> str | None:
    """`KILL` for a command that SIGKILL ended; None for one that ended by itself."""
    return getattr(channel, "exit_signal", None)


def signal_exit_code(name: str) -> int:
    """128 + the signal's number, as shells say it; 255 for a signal that this system does not know."""
    number = getattr(signal, f"SIG{name}", None)
    return 255 if number is None else 128 + int(number)


def _handle_request(channel: Any, message: Message) -> None:
    before = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        channel.exit_signal = message.get_text()
        channel.status_event.set()
    message.packet.seek(before)
    channel._handle_request(message)
