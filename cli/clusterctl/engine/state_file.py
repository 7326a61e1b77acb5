"""The last whole state of a stack in a file backend: kept while a run goes on, put back where the file is torn.

On a full disk the backend puts what it could write in the state's place, often nothing, and reports the failure only
then: the writer is closed, and so renamed, although its write failed (gocloud.dev/blob 0.46, Bucket.WriteAll and
Writer.Close). The next attempt copies that over the `.bak` as well. No engine reads such a stack any more (`failed to
load checkpoint`), and everything in it would be lost while it bills (engine 3.250, tried 2026-11-22).

Other files beside the state are torn if the engine is killed while it writes them; `remove_torn_files` removes these.
The state itself is put in place by a rename, and is whole unless the disk was full. Beside it the backend keeps
`<file>.attrs`, written in place: if the engine is killed in that instant, the file stays empty, and then every engine
says `failed to load checkpoint: EOF` (gocloud.dev/blob 0.46, fileblob.setAttrs; engine 3.250). Without that file the
state reads as it is. A lock that a power cut left empty keeps every engine away, too (`unexpected end of JSON input`),
and names nobody who could hold it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from clusterctl_infra.errors import EngineError

from clusterctl.engine.backend import copy_folders, folder_of, lock_folder, state_path
from clusterctl.engine.stack import Stack

LOOK_S = 1.0
LOOKS_COST = 20
"""The next look comes no sooner than after 20 times as long as this one took: at 256 nodes the file has 20 MB."""


class KeptState:
    """Keeps a second name, a hard link, of the newest whole state beside it.

    A link takes no room, and goes on naming the old state when the backend renames a new one into its place.
    """

    def __init__(self, backend_url: str, stack: Stack, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = state_file(backend_url, stack)
        self._clock = clock
        self._next_look = clock()
        self._seen: tuple[int, int] | None = None

    def follow(self) -> None:
        """Keeps the state as it is now, if it is whole: looked at once a second at most."""
        began = self._clock()
        if self._file is not None and began >= self._next_look:
            self._keep(self._file)
            took_s = self._clock() - began
            self._next_look = began + max(LOOK_S, LOOKS_COST * took_s)

    def end(self) -> None:
        """Deletes the copy after a run, unless it is the only whole state."""
        if self._file is not None and is_whole(self._file):
            _kept(self._file).unlink(missing_ok=True)

    def _keep(self, file: Path) -> None:
        with contextlib.suppress(OSError):  # no state yet, or a file system without links
            found = file.stat()
            if self._seen == (found.st_ino, found.st_mtime_ns):
                return
            fresh = file.with_name(f"{file.name}.keep")
            fresh.unlink(missing_ok=True)
            os.link(file, fresh)
            if is_whole(fresh):  # not `file`, which may be another by now
                self._seen = (found.st_ino, found.st_mtime_ns)
                os.replace(fresh, _kept(file))
            fresh.unlink(missing_ok=True)


def put_back(backend_url: str, stack: Stack, *, reap: str) -> str | None:
    """Puts the newest whole copy in the place of a torn state, and says so; None where nothing is torn.

    To be called while no engine runs. What was made since is in no state then: it is known by its tags. Raises
    EngineError where there is no copy; `reap`: the command that lists what bills without a state.
    """
    root, file = folder_of(backend_url), state_file(backend_url, stack)
    if root is None or file is None or not os.access(file, os.R_OK) or is_whole(file):
        return None
    copies = sorted((copy for copy in _copies(file, root, stack) if is_whole(copy)), key=_age)
    if not copies:
        raise EngineError(
            f"{file} is damaged, as by a full disk, and there is no complete copy of it: what bills can be found only "
            f"by its tags. Once that has ended, rm {shlex.quote(str(file))} lets an up begin anew",
            hint=reap,
        )
    torn_bytes, at = file.stat().st_size, time.gmtime(_age(copies[-1]))
    fresh = file.with_name(f"{file.name}.tmp")  # which `remove_torn_files` removes, should this be killed
    shutil.copy(copies[-1], fresh)  # with its permissions: only its owner may read a state
    # At no moment is there no state: the next `up` would take that for a cluster that was never made.
    shutil.copy(file, file.with_name(f"{file.name}.torn"))
    os.replace(fresh, file)
    file.with_name(f"{file.name}.attrs").unlink(missing_ok=True)  # the torn one's: without it the state reads as it is
    _kept(file).unlink(missing_ok=True)
    return (
        f"the state's file was damaged ({torn_bytes} bytes, as by a full disk): restored as it was at "
        f"{time.strftime('%H:%M:%S', at)} UTC, from {copies[-1].name}"
    )


def state_file(backend_url: str, stack: Stack) -> Path | None:
    """Where a file backend keeps the stack's state; None for another kind of backend."""
    root = folder_of(backend_url)
    return None if root is None else state_path(root, stack)


def is_whole(file: Path) -> bool:
    """Whether a file is a state to its end."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and isinstance(found.get("checkpoint"), dict)


def _kept(file: Path) -> Path:
    return file.with_name(f"{file.name}.kept")


def _copies(file: Path, root: Path, stack: Stack) -> list[Path]:
    """The copies of the state: ours, the `.bak`, and the two that the backend makes at the end of each run."""
    history, backups = copy_folders(root, stack)
    older = [*history.glob("*.checkpoint.json"), *backups.glob(f"{stack.name}.*.json")]
    return [_kept(file), file.with_name(f"{file.name}.bak"), *older]


def _age(file: Path) -> float:
    return file.stat().st_mtime


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
    """The files that may be removed if they are torn, since nobody would miss what they hold: never the state."""
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
