"""Whether the node at the other end of a paramiko connection still lives, by paramiko's public methods alone.

paramiko's own keepalives want no answer, so they tell nothing. Here a thread asks and is answered, and the socket that
paramiko reads notes when anything has come.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Self

import paramiko

QUESTIONS = 3
"""Unanswered questions until a silent node counts as lost, as in OpenSSH."""
QUESTION = "keepalive@openssh.com"


class NotingSocket(socket.socket):
    """Notes when something came: `heard_at`, on the monotonic clock."""

    heard_at: float

    @classmethod
    def taking(cls, connection: socket.socket) -> Self:
        """The connection as such a socket; the socket that was given can no longer be used."""
        taken = cls(connection.family, connection.type, connection.proto, fileno=connection.detach())
        taken.heard_at = time.monotonic()
        return taken

    def recv(self, most_bytes: int, flags: int = 0) -> bytes:
        """What has come, as from any socket."""
        chunk = super().recv(most_bytes, flags)
        self.heard_at = time.monotonic()
        return chunk


class SignsOfLife:
    """Asks a logged-in node for a sign of life now and then, until `stop`."""

    def __init__(self, transport: paramiko.Transport, connection: NotingSocket, *, lost_after_s: float) -> None:
        self._transport = transport
        self._socket = connection
        self._lost_after_s = lost_after_s
        self._is_stopped = threading.Event()
        threading.Thread(target=self._ask, daemon=True, name="signs of life").start()

    @property
    def is_silent(self) -> bool:
        """Whether nothing was heard for longer than a living node takes."""
        return time.monotonic() - self._socket.heard_at > self._lost_after_s

    def stop(self) -> None:
        """Asks no more."""
        self._is_stopped.set()

    def _ask(self) -> None:
        while not self._is_stopped.wait(self._lost_after_s / QUESTIONS) and self._transport.is_active():
            try:
                # Waits for the answer, or for the connection's end: a silent node is asked once.
                self._transport.global_request(QUESTION, wait=True)
            except (paramiko.SSHException, EOFError, OSError):
                return  # the connection has ended, and whoever uses it hears of that
