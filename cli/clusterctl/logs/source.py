"""The sources of log lines: names for logs that every node has, any file, any systemd unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

DEFAULT = "bootstrap"
_UNIT = re.compile(r"[A-Za-z0-9][\w.@:\\-]*")


_SCRIPT = re.compile(r"[A-Za-z0-9][\w.-]*\.[A-Za-z0-9]+")
"""`setup.sh`: a script of cluster.yaml is called by its file's name, with the extension."""
_NODE = re.compile(r"([a-z0-9-]+-)?[0-9]+")
SCRIPT_LOGS = "/var/log/clusterctl"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Paths of files, or else options for journalctl."""

    files: tuple[str, ...] = ()
    journal: tuple[str, ...] = ()


SOURCES: Mapping[str, Source] = {
    "bootstrap": Source(files=("/var/log/clusterctl.log",)),
    "cloud-init": Source(files=("/var/log/cloud-init.log", "/var/log/cloud-init-output.log")),
    "kernel": Source(journal=("-k",)),
    "system": Source(journal=()),
}


def chosen_sources(words: Sequence[str]) -> dict[str, Source]:
    """Word → source. A word is a name in `SOURCES`, a path that begins with / or a variable, `unit:NAME`, or a script.

    Raises UsageError.
    """
    return {word: _source(word) for word in words or (DEFAULT,)}


def _source(word: str) -> Source:
    if word in SOURCES:
        return SOURCES[word]
    if word.startswith(("/", "$")):
        return Source(files=(word,))
    if _SCRIPT.fullmatch(word) and not word.endswith(".log"):
        return Source(files=(f"{SCRIPT_LOGS}/{word}.log",))
    kind, _, unit = word.partition(":")
    if kind == "unit" and _UNIT.fullmatch(unit):
        return Source(journal=("-u", unit))
    if _NODE.fullmatch(word):
        message = f"no log is called {word!r}; a node is named with --node"
        raise UsageError(message, hint=f"clusterctl logs --node {word}")
    nearest = did_you_mean(word, SOURCES)
    known = f"write one of {', '.join(SOURCES)}, /a/file, unit:NAME, or a script such as setup.sh"
    raise UsageError(f"no log is called {word!r}{nearest or f'; {known}'}", hint="clusterctl logs --help")
