"""What a rehearsal says where its home takes nothing, and how it works on with a log that does not either."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import traceback
from collections.abc import Mapping

from clusterctl_infra.home_path import other_home

from clusterctl_rehearsal.home import rehearsal_home

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def cannot_keep(error: OSError, environ: Mapping[str, str]) -> tuple[str, str]:
    """A sentence with the place, and the command that helps: the kernel names no file of a full disk."""
    root = rehearsal_home(environ).root
    said = f"{error.filename or root}: {(error.strerror or str(error)).lower()}"
    return said, f"df -h {shlex.quote(str(root))}" if error.errno in FULL else other_home(environ)


def log_traceback() -> None:
    """Writes the exception that is being handled into the log; a full disk must not end who serves."""
    with contextlib.suppress(OSError):
        traceback.print_exc()


def told(error: Exception) -> str:
    """What a client is told of a failure that nobody expected; of a full disk, where and what helps."""
    if isinstance(error, OSError) and error.errno in FULL:
        return "; next: ".join(cannot_keep(error, os.environ))
    return f"the rehearsed region failed (its log says why): {error!r}"
