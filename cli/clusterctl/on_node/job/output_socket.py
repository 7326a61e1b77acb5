"""The socket at which ranks that mpirun started on a node deliver their output to that node's supervisor."""

from __future__ import annotations

import struct
import threading
from pathlib import Path
from socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket
from typing import IO, Callable


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


def _peer_uid(connection: socket) -> int:
    """The user at the other end, as the kernel says (unix(7), SO_PEERCRED: pid, uid, gid)."""
    credentials = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def connected_output(path: str) -> IO[bytes]:
    """Where a rank's parent writes what its rank says. Raises OSError."""
    with socket(AF_UNIX, SOCK_STREAM) as connection:
        connection.connect(path)
        return connection.makefile("wb")  # which keeps the connection open
