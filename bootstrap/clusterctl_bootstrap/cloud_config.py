"""The cloud-config of a node: name, host key, login user, the agent's files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from clusterctl_bootstrap.agent_source import agent_sources, agent_version
from clusterctl_bootstrap.birth import birth_json
from clusterctl_bootstrap.node_plan import NodeAccess, NodePlan
from clusterctl_bootstrap.trust import SSHD_LINES, trust_files

AGENT_FOLDER = "/usr/local/lib/clusterctl/clusterctl_bootstrap/node"
AGENT = "/usr/local/bin/clusterctl-node"
BIRTH = "/var/lib/clusterctl/birth.json"
SCRIPTS_FOLDER = "/var/lib/clusterctl/scripts"
SSHD_SETTINGS = "/etc/ssh/sshd_config.d/00-clusterctl.conf"


def cloud_config(node: NodePlan, access: NodeAccess) -> str:
    """`#cloud-config` text, ASCII only. JSON is YAML, and says the same thing the same way every time."""
    sources = agent_sources()
    settings = {
        "hostname": f"{node.cluster}-{node.slot}",
        "manage_etc_hosts": False,
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": access.host_private_key, "ed25519_public": access.host_public_key},
        "users": [
            {
                "name": access.user,
                "shell": "/bin/bash",
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "lock_passwd": True,
                "ssh_authorized_keys": [_printable(key) for key in access.authorized_keys],
            }
        ],
        "write_files": [
            # Keys near keys: gzip looks back no further than 32 KiB.
            *trust_files(node, access),
            *_node_files(node, agent_version(sources)),
            *agent_files(sources),
        ],
    }
    # YAML takes no control characters, and DEL is one that JSON leaves as it is.
    return "#cloud-config\n" + json.dumps(settings, indent=0).replace("\x7f", "\\u007f") + "\n"


def agent_files(sources: Mapping[str, str]) -> list[dict[str, str]]:
    """Entries of write_files: the agent's modules, and the program that runs them."""
    modules = [{"path": f"{AGENT_FOLDER}/{name}", "content": text} for name, text in sources.items()]
    launcher = (files("clusterctl_bootstrap") / "shell" / "clusterctl-node").read_text(encoding="utf-8")
    return [*modules, {"path": AGENT, "permissions": "0755", "content": launcher}]


def _node_files(node: NodePlan, agent: str) -> list[dict[str, str]]:
    # sshd reads ~/.ssh/environment at each session, so a pushed environment needs no restart of sshd.
    sshd = f"PermitUserEnvironment yes\nPasswordAuthentication no\n{SSHD_LINES}"
    return [
        {"path": BIRTH, "permissions": "0644", "content": birth_json(node, agent=agent) + "\n"},
        {"path": SSHD_SETTINGS, "permissions": "0644", "content": sshd},
        *(
            {"path": f"{SCRIPTS_FOLDER}/{script.name}", "permissions": "0700", "content": script.content}
            for script in node.scripts
            if not script.is_delivered
        ),
    ]


def _printable(key: str) -> str:
    """The key without non-ASCII and control characters in its comment: cloud-init misreads them in a MIME part."""
    return "".join(character for character in key if character.isascii() and character.isprintable())
