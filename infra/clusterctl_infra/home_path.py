"""Where a person's state lies: the command line, the Pulumi program, our provider and the rehearsal look there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.names import HOME_VARIABLE


def home_path(environ: Mapping[str, str]) -> Path:
    """`$CLUSTERCTL_HOME`, else `~/.local/state/clusterctl`; absolute. An empty variable counts as none."""
    named, person = environ.get(HOME_VARIABLE), environ.get("HOME")
    if named:
        return Path(named).expanduser().absolute()
    return (Path(person) if person else Path.home()).absolute() / ".local" / "state" / "clusterctl"
