"""Partial files: a file is gathered in one, beside its target, until it is complete."""

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
"""The longest file name on the usual file systems of Linux (NAME_MAX)."""


def partial_name(path: str, digest: str) -> str:
    """The path of the partial file for this target and content.

    The digest is part of it, so that a later try can continue with the file, and no copy of another content does.
    """
    return f"{partial_prefix(path)}{digest[:_DIGITS]}"


def partial_prefix(path: str) -> str:
    """The beginning of the path of every partial file for this target."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{_shortened(name)}.clusterctl-")


def left_over(names: Iterable[str], path: str, digest: str) -> list[str]:
    """Those of `names` that are partial files of other contents for this target, which no copy will ever complete."""
    of_target = re.compile(rf"{re.escape(partial_prefix(path))}[0-9a-f]{{{_DIGITS}}}")
    return [name for name in names if of_target.fullmatch(name) and name != partial_name(path, digest)]


def _shortened(name: str) -> str:
    """The name, or its beginning and a digest of it where the partial file's own would be too long."""
    if len(name.encode()) + len("..clusterctl-") + _DIGITS <= _MOST_BYTES:
        return name
    return name.encode()[:128].decode(errors="ignore") + hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]


class KeptParts:
    """The partial files of downloads on this computer; used by several threads."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    @contextlib.contextmanager
    def gathering(self, path: str) -> Iterator[None]:
        """Remembers this partial file while a download gathers in it, and forgets it if the download succeeds."""
        self._paths[path] = None
        yield
        del self._paths[path]

    def settle(self) -> list[str]:
        """A sentence for each partial file that is left and can be resumed; empty ones are removed."""
        sentences = []
        for path in list(self._paths):
            with contextlib.suppress(OSError):  # an error here must not replace the one that ended the download
                if size_bytes := os.stat(path).st_size:
                    sentences.append(
                        f"{_size_text(size_bytes)} are kept in {path}: run the same command again to resume"
                    )
                else:
                    os.unlink(path)
        return sentences


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes} bytes" if size_bytes < BYTES_PER_MB / 10 else f"{size_bytes / BYTES_PER_MB:.1f} MB"
