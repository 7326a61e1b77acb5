"""The private keys that a person's ssh configuration names for nodes, each once.

For a cluster that clusterctl made this is all that is taken from there: user, port, address, host key and way are what
cluster.yaml says (`access.bastion` is the ProxyJump), the same for everybody who uses the cluster.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from clusterctl_infra.outputs import InventoryNode

from clusterctl.ssh.persons_node import PersonsNode

WORDS = ("identityfile", "include")
"""A configuration without these names no key, and need not be understood, which takes 0.1 s."""


def identity_files(nodes: Sequence[InventoryNode], config: Path) -> list[Path]:
    """By the nodes' names, as ssh would look them up. Raises ConfigError for a file that cannot be understood."""
    return [Path(file) for file in dict.fromkeys(_named(nodes, config))]


def _named(nodes: Sequence[InventoryNode], config: Path) -> Iterable[str]:
    others = []
    for node in nodes:
        if isinstance(node, PersonsNode):
            yield from node.identity_files
        else:
            others.append(node)
    if others and _names_keys(config):
        persons_config = importlib.import_module("clusterctl.ssh.persons_config")  # loaded on use: it needs paramiko
        parsed = persons_config.read_ssh_config(config)
        for node in others:
            yield from persons_config.settings_of(node.name, parsed).identity_files


def _names_keys(config: Path) -> bool:
    try:
        text = config.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False
    return any(word in text for word in WORDS)
