"""The agent's modules as they travel in user-data, and the name of their code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from clusterctl_bootstrap.shortening import shortened


@cache
def agent_sources() -> Mapping[str, str]:
    """File name → text of each module, sorted by name; read once, 256 nodes carry the same."""
    folder = files("clusterctl_bootstrap") / "node"
    modules = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".py")), key=lambda entry: entry.name)
    return {entry.name: shortened(entry.read_text(encoding="utf-8")) for entry in modules}


def agent_version(sources: Mapping[str, str]) -> str:
    """Twelve hex digits that name the agent's code."""
    return hashlib.sha256("\0".join([*sources, *sources.values()]).encode()).hexdigest()[:12]
