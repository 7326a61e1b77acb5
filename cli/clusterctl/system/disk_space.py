"""Free space on the disks that a change writes to: on a full disk the state is torn (engine/state_file.py)."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.home_path import other_home

from clusterctl.home import named_home

MIB = 2**20
NEEDED_BYTES = 32 * MIB
"""What a change needs: for the engine's events, a small cluster's state with its copies, what is known of it here."""
COPIES = 8
"""How many copies of a state a run may write, the old ones too: state, backup, both as they are written, history."""
FULL_BYTES = MIB
"""If less is free, an engine that failed without a word is taken to have met a full disk."""
_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_BEFORE = re.compile(r"(/[^\s:]+)(?: cannot be written)?: $")
_AFTER = re.compile(r"\A: '(/[^']+)'")


class NoDiskSpace(ClusterctlError):
    """A change was refused before it began: a disk has no room for it. `reason`: which, and how much is free."""

    def __init__(self, reason: str, *, hint: str) -> None:
        super().__init__(f"{reason}: nothing was changed", hint=hint)
        self.reason = reason


def refuse_without_space(folder: Path, *, needed_bytes: int = NEEDED_BYTES) -> None:
    """Raises NoDiskSpace, before anything is changed, where so much cannot be written into `folder`."""
    left_bytes = free_bytes(folder)
    if left_bytes < needed_bytes:
        message = f"{folder} has {shown(left_bytes)} free, and a change of a cluster needs {shown(needed_bytes)} there"
        raise NoDiskSpace(message, hint=look_at(existing(folder)))


def full_folder(text: str, *, log: Path, is_silent: bool) -> Path | None:
    """The folder in which an engine found no room, by the `text` of its error; None if it failed for another reason.

    `is_silent`: it failed without a word; then that is the folder of its `log`, if that disk is full.
    """
    if words := _FULL.search(text):
        named = _BEFORE.search(text[: words.start()]) or _AFTER.search(text[words.end() :])
        return existing(Path(named[1])) if named else existing(log)
    return existing(log) if is_silent and free_bytes(log) < FULL_BYTES else None


def free_bytes(path: Path) -> int:
    """What can still be written where `path` is, or would be; sys.maxsize if the file system reports no size."""
    usage = shutil.disk_usage(existing(path))
    return usage.free if usage.total else sys.maxsize


def existing(path: Path) -> Path:
    """The nearest folder that exists at `path` or above it."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path("/"))


def shown(size_bytes: int) -> str:
    """`12 KiB`, `32 MiB`, `1.2 GiB`."""
    if size_bytes < MIB:
        return f"{size_bytes // 1024} KiB"
    return f"{size_bytes / MIB:.0f} MiB" if size_bytes < 1024 * MIB else f"{size_bytes / MIB / 1024:.1f} GiB"


def full_disk_text(folder: Path) -> str:
    """`the disk of /x was full (12 KiB are free now)`."""
    return f"the disk of {folder} was full ({shown(free_bytes(folder))} are free now)"


def look_at(folder: Path) -> str:
    """The command that shows how full the disk is."""
    return f"df -h {shlex.quote(str(folder))}"


FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
REASONS = FULL | {errno.EROFS}
OF_A_SHARE = frozenset({errno.ESTALE, errno.EIO, errno.ETIMEDOUT})
"""Errors of a home on a server that is away or was replaced (NFS, with `soft`); elsewhere they mean other things."""
OF_THE_HOME = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST})
"""Errors that a person has to mend if they concern the folder that the person named: elsewhere they are our bugs."""


def cannot_write(error: OSError, *, environ: Mapping[str, str]) -> ClusterctlError | None:
    """The error to show when a disk is full or read-only, the home is unusable, or its server is away; else None."""
    home = named_home(environ).path
    named = Path(os.fspath(error.filename)) if isinstance(error.filename, str | os.PathLike) else None
    # Not what lies deeper: the program has made the folders there itself.
    is_home = named is not None and (named in (home, *home.parents) or named.parent == home)
    if error.errno in OF_A_SHARE and named is not None and named.is_relative_to(home):
        message = f"{named} cannot be read or written: {os.strerror(error.errno or 0).lower()}"
        return ClusterctlError(f"{message}. clusterctl keeps what it knows in {home}", hint=other_home(environ))
    if error.errno is None or not (error.errno in REASONS or (is_home and error.errno in OF_THE_HOME)):
        return None
    message = f"{named or home} cannot be written: {os.strerror(error.errno).lower()}"
    if error.errno in FULL:
        folder = existing(named or home)
        return ClusterctlError(f"{message} ({shown(free_bytes(folder))} are free)", hint=look_at(folder))
    return ClusterctlError(f"{message}. clusterctl keeps what it knows in {home}", hint=other_home(environ))
