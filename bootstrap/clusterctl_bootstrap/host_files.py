"""What a host is given over SSH: the agent, its birth certificate, the cluster's keys, a unit and settings of SSH.

A host is an existing machine, which is somebody else's. There is no cloud-init: `clusterctl up` writes these files, and
`clusterctl down` removes them. All of them are new files; of the host's own, the agent changes only `/etc/hosts`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_bootstrap.agent_source import agent_sources, agent_version, later_sources
from clusterctl_bootstrap.birth import birth_json
from clusterctl_bootstrap.cloud_config import BIRTH, SCRIPTS_FOLDER, agent_files
from clusterctl_bootstrap.node.environment import Variable, slurm_variables, variables
from clusterctl_bootstrap.node_plan import SSH_PORT, NodePlan
from clusterctl_bootstrap.trust import BARRIER_SECRET, IDENTITIES, NODE_KEY

UNIT_NAME = "clusterctl-node.service"
UNIT = """\
[Unit]
Description=clusterctl: this machine is a node of a cluster
Wants=network-online.target
After=network-online.target
[Service]
Type=exec
RemainAfterExit=yes
ExecStart=/usr/local/bin/clusterctl-node boot
Restart=on-abnormal
[Install]
WantedBy=multi-user.target
"""
KNOWN_HOSTS = "/etc/ssh/clusterctl/known_hosts"
SSH_SETTINGS = "/etc/ssh/ssh_config.d/00-clusterctl.conf"
COMPUTED = (
    "NCCL_DEBUG",
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "TP_SOCKET_IFNAME",
    "NCCL_SOCKET_FAMILY",
    "NCCL_IB_HCA",
)
"""The variables that the agent computes on a host (node/host_network.py): all but NCCL_NET, which is for EFA."""

CHANGES_PROGRAMS = re.compile(
    r"(LD_|_RLD|PYTHON|PERL|RUBY|BASH|GIT_|SSH_|TERMINFO).*"
    r"|PATH|ENV|IFS|PS4|CDPATH|FPATH|ZDOTDIR|SHELL|SHELLOPTS|GLOBIGNORE|PROMPT_COMMAND|HOME|TMPDIR"
    r"|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|TERMPATH|TERMCAP"
    r"|JAVA_TOOL_OPTIONS|NODE_OPTIONS"
)
"""Variables that make another program run, or other code run in it: those that sudo removes, and more.

Sudo's are in its plugins/sudoers/env.c, initial_badenv_table. An account that may run only certain programs could set
them, if sshd took them from ~/.ssh/environment.
"""


@dataclass(frozen=True, kw_only=True)
class HostPeer:
    """One host as the others know it."""

    address: str
    """The address at which the other nodes reach it."""
    host_key: str
    """`ssh-ed25519 AAAA…`."""
    port: int = SSH_PORT
    """The port of its SSH server, for the nodes."""


@dataclass(frozen=True, kw_only=True)
class HostTrust:
    """What the hosts of a cluster know each other by; the node key and the barrier's secret are secrets."""

    node_private_key: str
    node_public_key: str
    barrier_secret: str
    peers: tuple[HostPeer, ...]
    """In the order of the slots."""

    def __repr__(self) -> str:
        return f"HostTrust({len(self.peers)} hosts)"


def host_files(node: NodePlan, trust: HostTrust) -> tuple[Mapping[str, str], ...]:
    """path, content and permissions (0644 if none are given) of each file of this host; the same for the same plan."""
    sources = {**agent_sources(), **later_sources()}
    return (
        *agent_files(sources),
        _file(BIRTH, birth_json(node, agent=agent_version(agent_sources())) + "\n"),
        _file(NODE_KEY, trust.node_private_key, "0600"),
        _file(BARRIER_SECRET, f"{trust.barrier_secret}\n", "0600"),
        _file(f"/etc/ssh/clusterctl/keys-{node.host_user}", _authorized_key(trust)),
        _file(KNOWN_HOSTS, _known_hosts(node.cluster, trust.peers)),
        _file(SSH_SETTINGS, _client_settings(node, trust.peers)),
        _file(f"/etc/systemd/system/{UNIT_NAME}", UNIT),
        *(_file(f"{SCRIPTS_FOLDER}/{script.name}", script.content, "0700") for script in node.scripts),
    )


def environment_names(node: NodePlan) -> tuple[str, ...]:
    """Every variable that the host's sshd may take from the agent's file, sorted.

    sshd takes them from any account's ~/.ssh/environment, so variables that change which programs run are left out.
    """
    facts = {
        "slot": node.slot,
        "rank": node.rank,
        "nodes": node.nodes,
        "gpus_per_node": node.gpus_per_node,
        "slot_cidr": node.slot_cidr,
        "cluster": node.cluster,
        "cluster_id": node.cluster_id,
        "generation": node.generation,
        "env": dict(node.env),
    }
    rows: Sequence[Variable] = (*variables(facts), *slurm_variables(facts))
    names = {*(row.name for row in rows), *COMPUTED}
    return tuple(sorted(name for name in names if not CHANGES_PROGRAMS.fullmatch(name)))


def names_kept_from_ssh(env: Mapping[str, str]) -> tuple[str, ...]:
    """The variables of `env:` that change which programs run, sorted: on hosts, commands over SSH go without them."""
    return tuple(sorted(name for name in env if CHANGES_PROGRAMS.fullmatch(name)))


def _authorized_key(trust: HostTrust) -> str:
    addresses = ",".join(peer.address for peer in trust.peers)
    return f'from="{addresses}" {trust.node_public_key}\n'


def _known_hosts(cluster: str, peers: Sequence[HostPeer]) -> str:
    return "".join(
        f"{_known_as(f'{cluster}-{slot}', peer.port)},{_known_as(peer.address, peer.port)} {peer.host_key}\n"
        for slot, peer in enumerate(peers)
    )


def _known_as(host: str, port: int) -> str:
    """How known_hosts names a host at a port (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""
    return host if port == SSH_PORT else f"[{host}]:{port}"


def _client_settings(node: NodePlan, peers: Sequence[HostPeer]) -> str:
    """The ssh settings by which the login user reaches the other hosts: by name or address, with declared keys only.

    They hold for that user alone: the file is for the whole machine, and its other users have their own accounts on the
    hosts.
    """
    names = ",".join(f"{node.cluster}-{slot},{peer.address}" for slot, peer in enumerate(peers))
    ports: dict[int, list[str]] = {}
    for slot, peer in enumerate(peers):
        ports.setdefault(peer.port, []).append(f"{node.cluster}-{slot},{peer.address}")
    elsewhere = "".join(
        f'Match localuser "{node.host_user}" originalhost {",".join(ports[port])}\nPort {port}\n'
        for port in sorted(ports.keys() - {SSH_PORT})
    )
    return elsewhere + (
        f'Match localuser "{node.host_user}" originalhost {names}\nUser {node.host_user}\n{IDENTITIES}'
        f"GlobalKnownHostsFile {KNOWN_HOSTS} /etc/ssh/ssh_known_hosts\nStrictHostKeyChecking yes\n"
    )


def _file(path: str, content: str, permissions: str = "0644") -> dict[str, str]:
    return {"path": path, "permissions": permissions, "content": content}
