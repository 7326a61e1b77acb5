"""What a process changes about itself: whose end ends it, its rights, which files it sees (prctl(2), mount(2))."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
from pathlib import Path
from typing import Iterable, List

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
CANNOT_RUN, NOT_FOUND = 126, 127
"""The exit codes that shells have for a program that they cannot run, or not find."""


def become(words: List[str]) -> int:
    """The verb: this process becomes a command, and ends with its parent.

    `words`: whether it and its programs may gain rights (`yes`), `--`, the command. Raises OSError.
    """
    may_sudo, _, *command = words
    if may_sudo != "yes":
        give_up_privileges()
    end_with_parent()
    os.execvp(command[0], command)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl %d" % option)


def adopt_orphans() -> None:
    """What our descendants leave behind becomes our own child, not init's."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """The kernel kills this process when its parent ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def give_up_privileges() -> None:
    """From now on no program that this process runs gains rights: sudo does not work."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def become_user(user: pwd.struct_passwd) -> None:
    """Makes this process, if it is root's, the user's, with all groups."""
    if os.getuid() == 0:
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


def hide(paths: Iterable[str], place: Path) -> None:
    """For root: hides these paths from this process and all that it starts, behind what is empty and nobody may read.

    `place`: a folder for the empty file and the empty folder. Raises OSError.
    """
    file, folder = place / "no-file", place / "no-folder"
    folder.mkdir(parents=True, exist_ok=True)
    file.touch()
    for nothing in (file, folder):
        nothing.chmod(0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    _mount(libc, None, "/", MS_REC | MS_PRIVATE)
    for path in paths:
        if os.path.exists(path):
            _mount(libc, folder if os.path.isdir(path) else file, path, MS_BIND)


def bind_file(source: Path, target: Path) -> None:
    """For root: this process, and all that shares its mounts, then sees `source` at `target`. Raises OSError."""
    _mount(ctypes.CDLL(None, use_errno=True), source, str(target), MS_BIND)


def _mount(libc: ctypes.CDLL, source: Path | None, target: str, flags: int) -> None:
    what = None if source is None else os.fsencode(source)
    if libc.mount(what, os.fsencode(target), None, ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), "mount", target)
