"""Files that an engine killed while writing its state left torn, in a file backend.

The state itself is put in place by a rename and is whole. Beside it the backend keeps `<file>.attrs`, written in place:
killed in that instant it stays empty, and then every engine says `failed to load checkpoint: EOF` (gocloud.dev/blob
0.46, fileblob.setAttrs; engine 3.250). Without that file the state reads as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from clusterctl.engine.stack import Stack


def remove_torn_files(backend_url: str, stack: Stack) -> tuple[Path, ...]:
    """Removes torn `.attrs` files and half-written copies of this stack; to be called while no engine runs."""
    parts = urlsplit(backend_url)
    if parts.scheme != "file":
        return ()
    removed = tuple(path for path in _files(Path(parts.path) / ".pulumi", stack) if _is_torn(path))
    for path in removed:
        path.unlink(missing_ok=True)
    return removed


def _files(root: Path, stack: Stack) -> Iterator[Path]:
    yield from root.glob("meta.yaml.attrs")
    yield from (root / "stacks" / stack.project).glob(f"{stack.name}.json*")
    yield from (root / "locks" / "organization" / stack.project / stack.name).glob("*")


def _is_torn(path: Path) -> bool:
    if path.suffix == ".tmp":
        return True
    if path.suffix != ".attrs":
        return False
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    return False
