"""The socket over which ranks' parents hand their ranks' output to the supervisor, each by a connection of its own.

A launcher that starts several ranks gives them its own stdout, a pipe. There, lines of more than 4 KiB that two ranks
print at the same time may mix (pipe(7), PIPE_BUF), and mpirun would carry all output to its own node.
"""

from __future__ import annotations

import select
import struct
import threading
import time
from pathlib import Path
from socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket
from typing import IO, Callable, Mapping

OUTPUT_VARIABLE = "CLUSTERCTL_JOB_OUTPUT"
"""Names the socket to ranks' parents."""
MOST_WAITING = 1024
RETRY_S = 0.5
"""How long a connection waits that cannot be taken now, as when too many files are open."""


def opened_door(path: Path) -> socket:
    """Where ranks' parents of this node connect. Raises OSError, as where the disk is full."""
    door = socket(AF_UNIX, SOCK_STREAM)
    try:
        door.bind(str(path))
        path.chmod(0o666)  # in a folder that is root's: nobody can have put another file there
        door.listen(MOST_WAITING)
        door.setblocking(False)
    except OSError:
        door.close()
        raise
    return door


class OutputReceiver:
    """Takes the connections of ranks' parents, and hands each one's stream to `follow`.

    Every user of the node can connect: only processes of `uid` and of root are listened to.
    """

    def __init__(self, door: socket, uid: int, follow: Callable[[IO[bytes]], None]) -> None:
        self._door = door
        self._uid = uid
        self._follow = follow
        self._lock = threading.Lock()

    def start(self) -> None:
        """Takes connections from now on, in a thread that ends with the process. Raises OSError where none begins."""
        try:
            threading.Thread(target=self._attend, daemon=True).start()
        except RuntimeError as e:
            self._door.close()  # so that ranks' parents write to their stdout, not to a socket that nobody reads
            raise OSError(str(e)) from e

    def take_waiting(self) -> bool:
        """Takes all connections that wait by now; True if none is left. A rank's last words may be in one."""
        with self._lock:
            while True:
                try:
                    connection, _ = self._door.accept()
                except BlockingIOError:
                    return True
                except OSError:
                    return False
                self._admit(connection)

    def _admit(self, connection: socket) -> None:
        with connection:
            connection.setblocking(True)
            if _peer_uid(connection) not in (0, self._uid):
                return
            try:
                self._follow(connection.makefile("rb"))
            except RuntimeError:
                pass  # no thread can be started: closed, the connection holds no rank up, which has its own log

    def _attend(self) -> None:
        waiting = select.poll()
        waiting.register(self._door, select.POLLIN)
        while True:
            waiting.poll()
            if not self.take_waiting():
                time.sleep(RETRY_S)


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
