"""The socket over which ranks' parents hand their ranks' output to the supervisor, each by a connection of its own.

A launcher that starts several ranks gives them its own stdout, a pipe. There, lines of more than 4 KiB that two ranks
print at the same time may mix (pipe(7), PIPE_BUF), and mpirun would carry all output to its own node.
"""

from __future__ import annotations

import struct
import threading
from pathlib import Path
from socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket
from typing import IO, Callable, Mapping

OUTPUT_VARIABLE = "CLUSTERCTL_JOB_OUTPUT"
"""Names the socket to ranks' parents."""


def receive_output(path: Path, uid: int, follow: Callable[[IO[bytes]], None]) -> None:
    """Listens where ranks' parents of this node write what their ranks say; in a thread that ends with the process.

    Every user of the node can connect: only processes of `uid` and of root are listened to.
    """
    door = socket(AF_UNIX, SOCK_STREAM)
    door.bind(str(path))
    path.chmod(0o666)  # in a folder that is root's: nobody can have put another file there
    door.listen(1024)

    def admit() -> None:
        while True:
            connection, _ = door.accept()
            with connection:
                if _peer_uid(connection) not in (0, uid):
                    continue
                follow(connection.makefile("rb"))

    threading.Thread(target=admit, daemon=True).start()


def rank_output(environment: Mapping[str, str], otherwise: IO[bytes]) -> IO[bytes]:
    """Where a rank's parent writes what its rank says: to `otherwise`, its stdout, if no socket is named or answers."""
    if OUTPUT_VARIABLE not in environment:
        return otherwise
    with socket(AF_UNIX, SOCK_STREAM) as connection:
        try:
            connection.connect(environment[OUTPUT_VARIABLE])
        except OSError:
            return otherwise
        return connection.makefile("wb")  # which keeps the connection open


def _peer_uid(connection: socket) -> int:
    """The user at the other end, as the kernel says (unix(7), SO_PEERCRED: pid, uid, gid)."""
    credentials = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
