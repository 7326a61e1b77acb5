"""Where a person's state lies, as a string: a command that needs no more starts faster without importing pathlib."""

from __future__ import annotations

import os
from collections.abc import Mapping

from clusterctl_infra.names import HOME_VARIABLE


def home_folder(environ: Mapping[str, str]) -> str:
    """`$CLUSTERCTL_HOME`, else `~/.local/state/clusterctl`; absolute. An empty variable counts as none."""
    named = environ.get(HOME_VARIABLE)
    if named:
        return _absolute(os.path.expanduser(named))
    return os.path.join(_absolute(environ.get("HOME") or os.path.expanduser("~")), ".local", "state", "clusterctl")


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
