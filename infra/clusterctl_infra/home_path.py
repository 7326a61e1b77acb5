"""Where a person's state lies: the command line, the Pulumi program, our provider and the rehearsal look there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.home_folder import home_folder


def home_path(environ: Mapping[str, str]) -> Path:
    """`$CLUSTERCTL_HOME`, else `~/.local/state/clusterctl`; absolute."""
    return Path(home_folder(environ))
