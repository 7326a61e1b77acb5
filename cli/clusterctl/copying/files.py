"""The operations that a copy needs of the computer where it ends, whether that is a node or this computer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class CopyFailed(Exception):
    """A copy failed; the message is for the person."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """A file's size, digest and permissions."""

    size_bytes: int
    sha256: str
    mode: int


class Source(Protocol):
    """The files of the node that a file is copied from. Every method may raise OSError and what a connection raises."""

    def content(self, path: str) -> Content:
        """Size, digest and permissions of a file. Raises CopyFailed if it is not a regular file."""

    def resume_read(self, path: str, size_bytes: int, sink: str, offset: int, moved: Callable[[int], None]) -> None:
        """Copies the file's bytes from `offset` to `size_bytes` into the file `sink` here, at the same place."""


class Files(Protocol):
    """One computer's files. Every method may raise OSError, and for a node also what its connection raises."""

    where: str
    """`here` or `there`, for messages."""

    def size_bytes(self, path: str) -> int | None:
        """A file's size; None if there is no such file."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of that name."""

    def followed(self, path: str) -> str:
        """The path with links followed; it need not exist. Raises CopyFailed if anything but a file is there."""

    def inside(self, folder: str, name: str) -> str:
        """The path of a name in a folder."""

    def beginning_with(self, prefix: str) -> Sequence[str]:
        """The paths that begin with `prefix`."""

    def free_bytes(self, path: str) -> int | None:
        """The free space on the file system of this file's folder; None if that is not known."""

    def gathered_bytes(self, path: str) -> int:
        """The size of a partial file, 0 if there is none. Raises CopyFailed if something else is there."""

    def digest(self, path: str, size_bytes: int) -> str:
        """The file's SHA-256 in hex; `size_bytes` says how long that may take. Raises CopyFailed."""

    def give_mode(self, path: str, mode: int) -> bool:
        """Sets the permission bits; False if they were set already. Raises CopyFailed if they cannot be set."""

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        """Gives the partial file its permissions and renames it to the target, in one step."""

    def remove(self, path: str) -> None:
        """Removes a file."""


def content_of(path: Path) -> Content:
    """The size, digest and permissions of a file on this computer. Raises OSError.

    The size is that of what was read: files of /proc and /sys report a size of 0.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size_bytes, mode = file.tell(), os.fstat(file.fileno()).st_mode
    return Content(size_bytes=size_bytes, sha256=digest, mode=mode & 0o777)
