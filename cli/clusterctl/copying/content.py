"""What is in a file here: its size and SHA-256."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Content:
    """A file's size, digest and permissions."""

    size_bytes: int
    sha256: str
    mode: int


def content_of(path: Path) -> Content:
    """Of all that can be read now. Raises OSError.

    Its size is counted: files of /proc and /sys say that they are empty.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size_bytes, mode = file.tell(), os.fstat(file.fileno()).st_mode
    return Content(size_bytes=size_bytes, sha256=digest, mode=mode & 0o777)
