"""The agent's modules as they travel in user-data, and the name of their code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from clusterctl_bootstrap.shortening import shortened

LATER = ("barrier.py",)
"""What no node needs before it is ready."""


@cache
def agent_sources() -> Mapping[str, str]:
    """File name → text of each module that a node is born with, sorted by name; 256 nodes carry the same."""
    return {name: text for name, text in _sources().items() if name not in LATER}


def later_sources() -> Mapping[str, str]:
    """File name → text of each module that a node gets with its membership: user-data has no room for them."""
    return {name: text for name, text in _sources().items() if name in LATER}


@cache
def _sources() -> Mapping[str, str]:
    folder = files("clusterctl_bootstrap") / "node"
    modules = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".py")), key=lambda entry: entry.name)
    return {entry.name: shortened(entry.read_text(encoding="utf-8")) for entry in modules}


def agent_version(sources: Mapping[str, str]) -> str:
    """Twelve hex digits that name the agent's code."""
    return hashlib.sha256("\0".join([*sources, *sources.values()]).encode()).hexdigest()[:12]
