"""The files that this process was loaded from, which may be others by the time of the next command."""

from __future__ import annotations

import os
import sys

PACKAGES = {"clusterctl", "clusterctl_infra"}


class OwnCode:
    """The modules of ours that are loaded now, and when their files were changed last."""

    def __init__(self) -> None:
        modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES]
        files = [file for module in modules if (file := module.__file__) is not None]
        self._changed_ns = {file: _changed_ns(file) for file in files}

    def is_changed(self) -> bool:
        """One of the files is not what it was: what is loaded here would do as it did before."""
        return any(_changed_ns(file) != changed for file, changed in self._changed_ns.items())


def _changed_ns(file: str) -> int:
    """When the file was changed; -1 when it is gone."""
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return -1
