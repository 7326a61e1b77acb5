"""What a person's ssh configuration says of keys for nodes: files (IdentityFile), an agent (IdentityAgent), no others
(IdentitiesOnly).

For a cluster that clusterctl made, nothing else is taken from there: user, port, address, host key and proxy command
are what cluster.yaml says (`access.bastion` is the ProxyJump), the same for everybody who uses the cluster.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.outputs import InventoryNode

from clusterctl.ssh.target import PersonsNode

WORDS = ("identityfile", "identityagent", "identitiesonly", "include")
"""A configuration without these says nothing of keys, and is not parsed, which would take 0.1 s."""


@dataclass(frozen=True, kw_only=True)
class Identities:
    """What the configuration says, for several nodes taken together."""

    files: tuple[Path, ...] = ()
    """Each once."""
    agent: str | None = None
    """The agent as it is written: a socket, the name of a variable, or `none`; None: nothing is said."""
    is_only: bool = False
    """The agent's other keys are not to be tried."""

    def agent_socket(self, usual: str) -> str:
        """The agent's socket, empty for no agent; `usual` is the one that the environment names."""
        if self.agent is None or self.agent == "SSH_AUTH_SOCK":
            return usual
        written = os.path.expandvars(self.agent.replace("%d", "~"))
        return "" if written.lower() == "none" else str(Path(written).expanduser())


def identities(nodes: Sequence[InventoryNode], config: Path) -> Identities:
    """The identities for these nodes, looked up by name as ssh would. Raises ConfigError for an unreadable file."""
    found = list(_identities_of_each(nodes, config))
    return Identities(
        files=tuple(dict.fromkeys(file for answer in found for file in answer.files)),
        agent=next((answer.agent for answer in found if answer.agent is not None), None),
        is_only=any(answer.is_only for answer in found),
    )


def _identities_of_each(nodes: Sequence[InventoryNode], config: Path) -> Iterable[Identities]:
    others = []
    for node in nodes:
        if isinstance(node, PersonsNode):
            files = tuple(Path(file) for file in node.identity_files)
            yield Identities(files=files, agent=node.identity_agent, is_only=node.has_identities_only)
        else:
            others.append(node)
    if others and _names_keys(config):
        persons_config = importlib.import_module("clusterctl.ssh.persons_config")
        parsed = persons_config.read_ssh_config(config)
        for node in others:
            found = persons_config.settings_of(node.name, parsed)
            files = tuple(Path(file) for file in found.identity_files)
            yield Identities(files=files, agent=found.identity_agent, is_only=found.has_identities_only)


def _names_keys(config: Path) -> bool:
    try:
        text = config.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False
    return any(word in text for word in WORDS)
