"""What broken downloads leave here: kept for the same command to go on with, and named; nothing when nothing came."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from clusterctl.copying.progress import BYTES_PER_MB


class KeptParts:
    """The files in which downloads gather what comes; used by several threads."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    @contextlib.contextmanager
    def gathering(self, path: str) -> Iterator[None]:
        """A download gathers in this file, which it has put in place or removed when it ends well."""
        self._paths[path] = None
        yield
        del self._paths[path]

    def settle(self) -> list[str]:
        """A sentence for each that is worth going on with; what has nothing in it is removed, where that can be."""
        sentences = []
        for path in list(self._paths):
            with contextlib.suppress(OSError):  # it is said beside what ended the download, and does not take its place
                if size_bytes := os.stat(path).st_size:
                    sentences.append(f"{_size_text(size_bytes)} are kept in {path}: the same command goes on there")
                else:
                    os.unlink(path)
        return sentences


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes} bytes" if size_bytes < BYTES_PER_MB / 10 else f"{size_bytes / BYTES_PER_MB:.1f} MB"
