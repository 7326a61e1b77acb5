"""Servers that fail in one way each, at one address and port, until they are closed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any  # paramiko's inner parts

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

SOON_S = 0.2
"""After this the answer to the request for a command is on its way, and the command may begin."""


@contextlib.contextmanager
def dropped_syn(address: tuple[str, int]) -> Iterator[None]:
    """Nobody answers: the queue of a listener that never accepts is full, and Linux drops what else comes."""
    with socket.socket() as listener, contextlib.ExitStack() as queued:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(0)
        for _ in range(4):
            waiting = queued.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield


@contextlib.contextmanager
def silent(address: tuple[str, int]) -> Iterator[None]:
    """Takes connections and says nothing."""
    with socket.create_server(address):
        yield


@contextlib.contextmanager
def greeting_then_silence(address: tuple[str, int]) -> Iterator[None]:
    """Says which SSH it speaks, and nothing more."""
    with answering(address, lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")):
        yield


class Behaviour(paramiko.ServerInterface):
    """A server that lets everybody in and starts every command; what it does then is `then`'s matter."""

    def __init__(self, then: Callable[[paramiko.Transport, paramiko.Channel], None]) -> None:
        self.then = then
        self.lets_in = True
        self.opens_channels = True

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL if self.lets_in else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if self.opens_channels:
            return OPEN_SUCCEEDED
        return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Timer(SOON_S, self.then, args=(channel.get_transport(), channel)).start()
        return True


def nothing(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    """The command runs for ever."""


def freezes(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    """Half an answer, and then the machine stands still: nothing is read or sent any more."""
    channel.sendall(b"half ")
    packetizer: Any = transport.packetizer
    packetizer.read_message = lambda: time.sleep(3600)


def reboots(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    """Half an answer, and then the connection breaks."""
    channel.sendall(b"half ")
    transport.sock.close()


def says(what: bytes) -> Callable[[paramiko.Transport, paramiko.Channel], None]:
    """Prints this, and ends with 0."""

    def then(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
        channel.sendall(what)
        channel.send_exit_status(0)
        channel.close()

    return then


@contextlib.contextmanager
def ssh_server(address: tuple[str, int], host_key: Path, behaviour: Behaviour) -> Iterator[None]:
    """An SSH server that behaves so."""
    key = paramiko.PKey.from_path(host_key)

    def serve(connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(key)
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):
            transport.start_server(event=threading.Event(), server=behaviour)

    with answering(address, serve):
        yield


@contextlib.contextmanager
def answering(address: tuple[str, int], serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """A listener whose every connection is given to `serve` and kept until the end."""
    kept: list[socket.socket] = []
    with socket.create_server(address) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()
