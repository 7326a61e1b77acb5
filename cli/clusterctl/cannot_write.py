"""A computer on which nothing can be written: no fault of the program's, so it has a sentence of its own."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.names import HOME_VARIABLE

from clusterctl.home import home_directory

REASONS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def cannot_write(error: OSError, *, environ: Mapping[str, str]) -> ClusterctlError | None:
    """What to tell when a disk is full or read-only; None for every other failure."""
    if error.errno not in REASONS:
        return None
    home = home_directory(environ).path
    place = os.fspath(error.filename) if isinstance(error.filename, str | os.PathLike) else str(home)
    return ClusterctlError(
        f"{place} cannot be written: {os.strerror(error.errno).lower()}. clusterctl keeps what it knows in {home}",
        hint=f"df -h {shlex.quote(str(home))}, or elsewhere: export {HOME_VARIABLE}=DIR",
    )
