"""Where a file is gathered beside its target until it is whole, and what broken copies have left there. Pure."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable

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
