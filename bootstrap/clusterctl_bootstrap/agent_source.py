"""The agent's modules as they travel in user-data, and the id of their code."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain

from clusterctl_bootstrap.kept_texts import cache_folder, kept
from clusterctl_bootstrap.shortening import shortened

LATER = (
    *("apply.py", "barrier.py", "barrier_door.py", "barrier_lines.py", "usage.py"),
    *("beat_port.py", "beats.py", "boundary.py", "dead_man.py", "ending.py", "host_network.py", "later.py"),
    *("idle_cluster.py", "idle_judge.py", "idle_node.py", "idle_peer.py", "idle_signals.py", "release.py"),
    *("metadata_service.py", "notices.py", "person_hook.py", "received.py", "register.py"),
    *("spot_market.py", "warning.py", "watch.py"),
)
"""The modules that no node needs before `clusterctl up` delivers its membership; hosts are given all at once."""


@cache
def agent_sources() -> Mapping[str, str]:
    """File name → text of each module that a node is born with, sorted by name; all nodes carry the same."""
    return {name: text for name, text in _sources().items() if name not in LATER}


def later_sources() -> Mapping[str, str]:
    """File name → text of each module that a node gets with its membership: user-data has no room for them."""
    return {name: text for name, text in _sources().items() if name in LATER}


@cache
def _sources() -> Mapping[str, str]:
    """File name → text of each module of the agent, sorted by name.

    Shortening takes 0.15 s, half of what a `clusterctl plan` may take, so the texts are kept from run to run.
    """
    package = files("clusterctl_bootstrap")
    modules = sorted((entry for entry in (package / "node").iterdir() if entry.name.endswith(".py")), key=_name)
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in modules}
    recipe = (package / "shortening.py").read_text(encoding="utf-8")
    return kept(
        cache_folder(os.environ) / "agent",
        [sys.version, recipe, *chain.from_iterable(texts.items())],
        lambda: {name: shortened(text) for name, text in texts.items()},
    )


def agent_version(sources: Mapping[str, str]) -> str:
    """Twelve hex digits that identify the agent's code."""
    return hashlib.sha256("\0".join([*sources, *sources.values()]).encode()).hexdigest()[:12]


def _name(entry: Traversable) -> str:
    return entry.name
