"""What is in a file here: its size and SHA-256."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Content:
    """A file's size, digest and permissions."""

    size_bytes: int
    sha256: str
    mode: int


def content_of(path: Path) -> Content:
    """Reads the whole file. Raises OSError."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    status = path.stat()
    return Content(size_bytes=status.st_size, sha256=digest, mode=status.st_mode & 0o777)
