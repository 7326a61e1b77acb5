"""Texts that take long to make, kept in the person's cache by the digest of all that they are made of."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Texts = Mapping[str, str]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """`$CLUSTERCTL_CACHE`, else `clusterctl` where the person's caches are."""
    if own := environ.get("CLUSTERCTL_CACHE"):
        return Path(own)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "clusterctl"


def kept(folder: Path, ingredients: Iterable[str], make: Callable[[], Texts]) -> Texts:
    """What `make` gives, read from `folder` if it was made from the same before; an unusable cache is ignored."""
    digest = hashlib.sha256("\0".join(ingredients).encode()).hexdigest()
    path = folder / f"{digest[:32]}.json"
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        found = None
    if isinstance(found, dict):
        return found
    texts = dict(make())
    try:
        _write(path, json.dumps(texts))
    except OSError:
        pass  # a full or read-only disk: they are made anew next time
    return texts


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, fresh = tempfile.mkstemp(dir=path.parent)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(fresh, path)
