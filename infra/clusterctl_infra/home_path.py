"""The home, where the command line, the Pulumi program, our provider and the rehearsal keep their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl_infra.home_folder import home_folder
from clusterctl_infra.names import HOME_VARIABLE


def home_path(environ: Mapping[str, str]) -> Path:
    """`$CLUSTERCTL_HOME`, else `~/.local/state/clusterctl`; absolute."""
    return Path(home_folder(environ))


def other_home(environ: Mapping[str, str]) -> str:
    """The shell command that makes another folder the home: a hint for when the one in `environ` cannot be used."""
    if environ.get(HOME_VARIABLE):
        return f"unset {HOME_VARIABLE}"
    return f"export {HOME_VARIABLE}=/var/tmp/clusterctl-$(id -un)"
