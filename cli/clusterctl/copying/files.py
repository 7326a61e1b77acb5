"""What a copy needs of the computer that it ends on: the same of a node as of this one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class CopyFailed(Exception):
    """One copy that did not come to its end; the message is for the person."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """A file's size, digest and permissions."""

    size_bytes: int
    sha256: str
    mode: int


class Source(Protocol):
    """The node that a file comes from. All of it raises what its connection raises, and OSError."""

    def content(self, path: str) -> Content:
        """Size, digest and permissions of a file. Raises CopyFailed if it is not a regular file."""

    def read_on(self, path: str, size_bytes: int, sink: str, offset: int, moved: Callable[[int], None]) -> None:
        """Reads the file's first `size_bytes` from `offset` on into the file `sink` here, from there on."""


class Files(Protocol):
    """One computer's files. All of it may raise OSError; of a node, what its connection raises, too."""

    where: str
    """`here` or `there`, for messages."""

    def size_bytes(self, path: str) -> int | None:
        """A file's size; None when there is none."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of that name."""

    def followed(self, path: str) -> str:
        """The file that is meant, behind any links; it need not be there. Raises CopyFailed for what is no file."""

    def inside(self, folder: str, name: str) -> str:
        """A name in a folder."""

    def beginning_with(self, prefix: str) -> Sequence[str]:
        """The paths of files that begin so."""

    def room_bytes(self, path: str) -> int | None:
        """What the file system of this file's folder still takes; None where it does not say."""

    def gathered_bytes(self, path: str) -> int:
        """The size of a partial file, 0 without one. Raises CopyFailed where somebody else put it there."""

    def digest(self, path: str, size_bytes: int) -> str:
        """The SHA-256 of the file. Raises CopyFailed."""

    def give_mode(self, path: str, mode: int) -> bool:
        """Sets permission bits; False when they were so. Raises CopyFailed where they cannot be set."""

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        """The gathered content becomes the target, at once."""

    def remove(self, path: str) -> None:
        """Removes a file."""


def content_of(path: Path) -> Content:
    """Of all that can be read now. Raises OSError.

    Its size is counted: files of /proc and /sys say that they are empty.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size_bytes, mode = file.tell(), os.fstat(file.fileno()).st_mode
    return Content(size_bytes=size_bytes, sha256=digest, mode=mode & 0o777)
