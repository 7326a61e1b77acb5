"""Where clusterctl keeps its files (the home), and whether it is private; without pathlib, so commands start faster."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from clusterctl_infra.names import HOME_VARIABLE


def home_folder(environ: Mapping[str, str]) -> str:
    """`$CLUSTERCTL_HOME`, else `~/.local/state/clusterctl`; absolute. An empty variable counts as none."""
    named = environ.get(HOME_VARIABLE)
    if named:
        return _absolute(os.path.expanduser(named))
    return os.path.join(_absolute(environ.get("HOME") or os.path.expanduser("~")), ".local", "state", "clusterctl")


def is_private_or_missing(environ: Mapping[str, str], user_id: int) -> bool:
    """Whether the home is closed to all but that user, or not there: `private_home` has nothing to close or refuse."""
    try:
        found = os.stat(home_folder(environ))
    except OSError:
        return True
    return found.st_uid == user_id and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
