"""Where a file is gathered beside its target until it is whole, and what broken copies have left there. Pure."""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
from collections.abc import Iterable, Iterator

from clusterctl.copying.progress import BYTES_PER_MB

_DIGITS = 16
_MOST_BYTES = 255
"""Of a file's name, on every file system that Linux mounts for people (NAME_MAX)."""


def partial_name(path: str, digest: str) -> str:
    """Named by the content, so that a later try can go on with it, and none goes on with another's."""
    return f"{partial_prefix(path)}{digest[:_DIGITS]}"


def partial_prefix(path: str) -> str:
    """How the name of every partial file of this target begins."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{_shortened(name)}.clusterctl-")


def left_over(names: Iterable[str], path: str, digest: str) -> list[str]:
    """Those of `names` that copies of other contents to this target have left: nothing ever goes on with them."""
    of_target = re.compile(rf"{re.escape(partial_prefix(path))}[0-9a-f]{{{_DIGITS}}}")
    return [name for name in names if of_target.fullmatch(name) and name != partial_name(path, digest)]


def _shortened(name: str) -> str:
    """The name, or its beginning and a digest of it where the partial file's own would be too long."""
    if len(name.encode()) + len("..clusterctl-") + _DIGITS <= _MOST_BYTES:
        return name
    return name.encode()[:128].decode(errors="ignore") + hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]


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
                    sentences.append(
                        f"{_size_text(size_bytes)} are kept in {path}: run the same command again to resume"
                    )
                else:
                    os.unlink(path)
        return sentences


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes} bytes" if size_bytes < BYTES_PER_MB / 10 else f"{size_bytes / BYTES_PER_MB:.1f} MB"
