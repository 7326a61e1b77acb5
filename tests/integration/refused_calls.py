"""Becomes a command for which a system call is refused, as some file systems refuse it.

By a filter of system calls (seccomp(2)), which everything that the command starts has, too. x86-64 and aarch64.

    python refused_calls.py flock COMMAND…     no file can be locked, as on NFS without a lock service
    python refused_calls.py bind COMMAND…      no socket can be in a folder, as on CIFS
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

CALLS = {
    "flock": ({"x86_64": 73, "aarch64": 32}, errno.ENOLCK),
    "bind": ({"x86_64": 49, "aarch64": 200}, errno.EOPNOTSUPP),
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def without(call: str, argv: list[str]) -> list[str]:
    """The command line that runs `argv` with this call refused."""
    return [sys.executable, str(Path(__file__)), call, *argv]


def become(call: str, argv: list[str]) -> None:
    """Never returns; raises OSError where it fails."""
    numbers, error = CALLS[call]
    rows = (
        (LOAD, 0, 0, 0),  # the number of the call
        (JUMP_IF_EQUAL, 0, 1, numbers[platform.machine()]),
        (RETURN, 0, 0, ERRNO | error),
        (RETURN, 0, 0, ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    become(sys.argv[1], sys.argv[2:])
