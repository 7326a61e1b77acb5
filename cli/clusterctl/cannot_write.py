"""A computer on which nothing can be written: no fault of the program's, so it has a sentence of its own."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.home_path import other_home

from clusterctl.home import named_home
from clusterctl.room import existing, free_bytes, look_at, shown

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
REASONS = FULL | {errno.EROFS}
OF_THE_HOME = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST})
"""Reasons that are the person's only where the folder that they named is concerned: elsewhere they are ours."""


def cannot_write(error: OSError, *, environ: Mapping[str, str]) -> ClusterctlError | None:
    """What to tell when a disk is full or read-only, or the home cannot be one; None for every other failure."""
    home = named_home(environ).path
    named = Path(os.fspath(error.filename)) if isinstance(error.filename, str | os.PathLike) else None
    # Of what lies deeper, the program has made the folders itself.
    is_home = named is not None and (named in (home, *home.parents) or named.parent == home)
    if error.errno is None or not (error.errno in REASONS or (is_home and error.errno in OF_THE_HOME)):
        return None
    told = f"{named or home} cannot be written: {os.strerror(error.errno).lower()}"
    if error.errno in FULL:
        folder = existing(named or home)
        return ClusterctlError(f"{told} ({shown(free_bytes(folder))} are free)", hint=look_at(folder))
    return ClusterctlError(f"{told}. clusterctl keeps what it knows in {home}", hint=other_home(environ))
