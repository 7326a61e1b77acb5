"""Files that an engine killed while writing its state left torn, in a file backend.

The state itself is put in place by a rename, and is whole: on a full disk alone it is not (whole_state.py). Beside it
the backend keeps `<file>.attrs`, written in place: killed in that instant it stays empty, and then every engine says
`failed to load checkpoint: EOF` (gocloud.dev/blob 0.46, fileblob.setAttrs; engine 3.250). Without that file the state
reads as it is. A lock that a power cut left empty keeps every engine away, too (`unexpected end of JSON input`), and
names nobody who could hold it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from clusterctl.engine.backend import folder_of, lock_folder, state_path
from clusterctl.engine.stack import Stack


def remove_torn_files(backend_url: str, stack: Stack) -> tuple[Path, ...]:
    """Removes torn `.attrs` files and half-written copies of this stack; to be called while no engine runs."""
    root = folder_of(backend_url)
    if root is None:
        return ()
    removed = tuple(path for path in _files(root, stack) if _is_torn(path))
    for path in removed:
        path.unlink(missing_ok=True)
    return removed


def _files(root: Path, stack: Stack) -> Iterator[Path]:
    """Those that hold nothing that anybody would miss: never the state itself."""
    yield from root.glob("meta.yaml.attrs")
    state = state_path(root, stack)
    yield from state.parent.glob(f"{state.name}*.attrs")
    yield from state.parent.glob(f"{state.name}*.tmp")
    yield from lock_folder(root, stack).glob("*")


def _is_torn(path: Path) -> bool:
    if path.suffix == ".tmp":
        return True
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    return False
