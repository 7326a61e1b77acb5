"""The public keys that the person's ssh-agent holds."""

from __future__ import annotations

import socket
import struct

ASK = struct.pack(">IB", 1, 11)  # SSH_AGENTC_REQUEST_IDENTITIES (draft-miller-ssh-agent, 4.4; checked 2026-11-21)
ANSWER = 12
TIMEOUT_S = 2.0


def agent_keys(agent_socket: str) -> list[bytes]:
    """The keys as SSH writes them, in the agent's order; none when no agent answers."""
    if not agent_socket:
        return []
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(agent_socket)
            connection.sendall(ASK)
            (length,) = struct.unpack(">I", _exactly(connection, 4))
            answer = _exactly(connection, length)
    except OSError:
        return []
    if answer[:1] != bytes([ANSWER]):
        return []
    (count,) = struct.unpack_from(">I", answer, 1)
    keys, rest = [], answer[5:]
    for _ in range(count):
        key, rest = _text(rest)
        _, rest = _text(rest)
        keys.append(key)
    return keys


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        chunk = connection.recv(length - len(data))
        if not chunk:
            raise OSError("the agent hung up")
        data += chunk
    return data


def _text(data: bytes) -> tuple[bytes, bytes]:
    """An SSH string, and what follows it."""
    (length,) = struct.unpack_from(">I", data)
    return data[4 : 4 + length], data[4 + length :]
