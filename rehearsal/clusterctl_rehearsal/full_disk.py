"""What a rehearsal says when its home cannot be written, and a log that does not raise on a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import sys
import traceback
from collections.abc import Mapping

from clusterctl_infra.home_path import other_home

from clusterctl_rehearsal.home import rehearsal_home

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def cannot_keep(error: OSError, environ: Mapping[str, str]) -> tuple[str, str]:
    """(sentence with the place, command that helps). The place is the home if the error names no file (a full disk)."""
    root = rehearsal_home(environ).root
    sentence = f"{error.filename or root}: {(error.strerror or str(error)).lower()}"
    return sentence, f"df -h {shlex.quote(str(root))}" if error.errno in FULL else other_home(environ)


def log(line: str) -> None:
    """Writes a line into the log; a full disk must not end the caller."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr)


def log_traceback() -> None:
    """Writes the exception that is being handled into the log; a full disk must not end the server."""
    with contextlib.suppress(OSError):
        traceback.print_exc()


def message_for_client(error: Exception) -> str:
    """What a client gets to read of an unexpected failure; for a full disk, its place and a command that helps."""
    if isinstance(error, OSError) and error.errno in FULL:
        return "; next: ".join(cannot_keep(error, os.environ))
    return f"the rehearsed region failed (its log says why): {error!r}"
