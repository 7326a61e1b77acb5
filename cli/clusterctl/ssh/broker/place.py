"""Where commands find the process that keeps connections, and which commands it serves.

Imports next to nothing: see `client`.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping

from clusterctl_infra.version import VERSION

VARIABLE = "CLUSTERCTL_WARM"
FOLDER_NAME = "warm"
SOCKET_NAME = "socket"
STAMP_NAME = "stamp"
MOST_STAMP_BYTES = 8192

OFF = {"no", "off", "0", "false"}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether the person wants no connections kept."""
    return environ.get(VARIABLE, "").lower() in OFF


def stamp() -> str:
    """Version, folder, network and mounts of this clusterctl; commands connect to no process with another stamp."""
    return " ".join([VERSION, _PACKAGE, *(os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "mnt"))])


def opened(folder: str) -> str:
    """A path to the socket in `folder` that is never too long for a socket's name (108 bytes, unix(7)).

    Holds a descriptor of the folder for the rest of the process. Raises OSError without the folder.
    """
    return f"/proc/self/fd/{os.open(folder, os.O_RDONLY | os.O_DIRECTORY)}/{SOCKET_NAME}"


def write_stamp(folder: str, number: int) -> None:
    """Writes down which clusterctl listens on the socket with this inode number: others' commands do not connect.

    The number tells this socket from a later one of a version that writes no stamp. Raises OSError.
    """
    file = os.open(os.path.join(folder, STAMP_NAME), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(file, _stamp_of(number))
    finally:
        os.close(file)


def is_of_this_version(folder: str) -> bool:
    """Whether the process that listens in the folder is of this clusterctl. Raises OSError where there is no stamp."""
    file = os.open(os.path.join(folder, STAMP_NAME), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(file, MOST_STAMP_BYTES) == _stamp_of(os.stat(os.path.join(folder, SOCKET_NAME)).st_ino)
    finally:
        os.close(file)


def _stamp_of(number: int) -> bytes:
    return f"{number} {stamp()}".encode(errors="surrogateescape")


def is_same_person(connection: socket.socket) -> bool:
    """Whether the other side is a process of this user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return bool(user == os.getuid())
