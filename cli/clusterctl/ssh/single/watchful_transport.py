"""paramiko's transport with two things that it lacks: which signal ended a command, and whether the other side lives.

It reaches into paramiko (`_channel_handler_table`, `_handle_request`, `_send_user_message`, the packetizer; the same
from 3.5 to 4.0): the message that tells the signal is dropped, and keepalives are sent without asking for an answer,
before any public method could do better.
"""

from __future__ import annotations

import time
from typing import Any  # paramiko's inner parts, which its stubs leave out

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST, cMSG_GLOBAL_REQUEST
from paramiko.message import Message

QUESTIONS = 3
"""Unanswered keepalives until a silent node counts as lost, as in OpenSSH."""


class WatchfulTransport(paramiko.Transport):
    """Sets `exit_signal` on channels (RFC 4254, 6.10); knows how long nothing has been heard."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        table: dict[int, Any] = paramiko.Transport.__dict__["_channel_handler_table"]
        self._channel_handler_table = {**table, MSG_CHANNEL_REQUEST: _handle_request}
        self._lost_after_s: float | None = None
        self._heard_at = time.monotonic()
        packetizer: Any = self.packetizer
        read_message = packetizer.read_message

        def read_and_note() -> Any:
            message = read_message()
            self._heard_at = time.monotonic()
            return message

        packetizer.read_message = read_and_note

    def watch(self, lost_after_s: float) -> None:
        """Asks the other side for a sign of life now and then; after so long without any, `is_silent` holds."""
        self._lost_after_s = lost_after_s
        packetizer: Any = self.packetizer
        packetizer.set_keepalive(lost_after_s / QUESTIONS, self._ask)

    @property
    def is_silent(self) -> bool:
        """Nothing was heard for longer than a living node takes."""
        return self._lost_after_s is not None and time.monotonic() - self._heard_at > self._lost_after_s

    def _ask(self) -> None:
        message = Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        itself: Any = self
        itself._send_user_message(message)


def is_silent(channel: paramiko.Channel) -> bool:
    """The node behind the channel gives no sign of life."""
    transport = channel.get_transport()
    return isinstance(transport, WatchfulTransport) and transport.is_silent


def exit_signal(channel: paramiko.Channel) -> str | None:
    """`KILL` for a command that SIGKILL ended; None for one that ended by itself."""
    return getattr(channel, "exit_signal", None)


def _handle_request(channel: Any, message: Message) -> None:
    before = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        channel.exit_signal = message.get_text()
        channel.status_event.set()
    message.packet.seek(before)
    channel._handle_request(message)
