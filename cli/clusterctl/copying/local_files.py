"""This computer's files."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from clusterctl.copying.files import CopyFailed, Files, content_of

PARTIAL_MODE = 0o600
"""The permissions of a partial file, until it is complete and gets those of its source: it may be a secret."""


def opened_as_own(path: str, flags: int) -> int:
    """An opener for `open`: opens a partial file only if it is this user's own regular file, and follows no link.

    Others may be able to write into the folder, and know the file's name, so they could put a link in its place.
    Raises OSError, CopyFailed.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, PARTIAL_MODE)
    try:
        refuse_others(path, os.fstat(descriptor))
    except CopyFailed:
        os.close(descriptor)
        raise
    return descriptor


def made_as_own(path: str, flags: int) -> int:
    """An opener for `open`: makes the partial file, or opens it as `opened_as_own` does if it exists."""
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PARTIAL_MODE)
    except FileExistsError:
        return opened_as_own(path, flags)


def refuse_others(path: str, status: os.stat_result) -> None:
    """Raises CopyFailed for anything but a regular file, for another user's file, and for one of several hard links."""
    if not stat.S_ISREG(status.st_mode):
        raise CopyFailed(f"{path} is in the way and is not a regular file; somebody else may have put it there")
    if status.st_uid != os.geteuid():
        raise CopyFailed(f"{path} is in the way: it belongs to the user with the number {status.st_uid}")
    if status.st_nlink > 1:
        raise CopyFailed(f"{path} is in the way: it is one of {status.st_nlink} hard links to a file")


class LocalFiles(Files):
    """The operations on this computer's files that a copy needs."""

    where = "here"

    def size_bytes(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def followed(self, path: str) -> str:
        meant = os.path.realpath(path) if os.path.islink(path) else path
        if os.path.lexists(meant) and not os.path.isfile(meant):
            raise CopyFailed(f"{meant} is here already and is not a regular file")
        return meant

    def inside(self, folder: str, name: str) -> str:
        return os.path.join(folder, name)

    def beginning_with(self, prefix: str) -> Sequence[str]:
        folder, beginning = os.path.split(prefix)
        with contextlib.suppress(FileNotFoundError), os.scandir(folder or ".") as entries:
            return [os.path.join(folder, entry.name) for entry in entries if entry.name.startswith(beginning)]
        return []

    def free_bytes(self, path: str) -> int | None:
        return shutil.disk_usage(os.path.dirname(path) or ".").free

    def gathered_bytes(self, path: str) -> int:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return 0
        refuse_others(path, status)
        return status.st_size

    def digest(self, path: str, size_bytes: int) -> str:
        return content_of(Path(path)).sha256

    def give_mode(self, path: str, mode: int) -> bool:
        if os.stat(path).st_mode & 0o777 == mode:
            return False
        try:
            os.chmod(path, mode)
        except OSError as e:
            message = f"{path} was here already, but its permissions cannot be made {mode:03o}: {e.strerror}"
            raise CopyFailed(message) from e
        return True

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        with open(partial, "rb", opener=opened_as_own) as file:
            os.fchmod(file.fileno(), mode)
        os.replace(partial, target)

    def remove(self, path: str) -> None:
        os.unlink(path)
