"""A computer on which nothing can be written: no fault of the program's, so it has a sentence of its own."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.home_path import other_home

from clusterctl.home import named_home

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
    reason = os.strerror(error.errno).lower()
    return ClusterctlError(
        f"{named or home} cannot be written: {reason}. clusterctl keeps what it knows in {home}",
        hint=_what_helps(error.errno, home, environ),
    )


def _what_helps(number: int, home: Path, environ: Mapping[str, str]) -> str:
    return f"df -h {shlex.quote(str(home))}" if number in FULL else other_home(environ)
