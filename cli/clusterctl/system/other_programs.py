"""Programs that run in this one's place, or as its children. Not in `processes`, which nearly every verb loads."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NoReturn

from clusterctl_infra.errors import ClusterctlError

PACKAGES = {"ssh": "openssh-client", "rsync": "rsync"}


def ends_with_parent() -> list[str]:
    """The words before a program's argv that have it get SIGINT when this process ends; empty without setpriv."""
    found = shutil.which("setpriv")
    return [] if found is None else [found, "--pdeathsig", "INT", "--"]


def become(argv: list[str]) -> NoReturn:
    """Replaces this process with `argv`. Raises ClusterctlError when the program is not installed."""
    sys.stdout.flush()
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError as e:
        package = PACKAGES.get(argv[0])
        hint = None if package is None else f"sudo apt-get install {package}"
        raise ClusterctlError(f"{argv[0]} is not installed", hint=hint) from e
