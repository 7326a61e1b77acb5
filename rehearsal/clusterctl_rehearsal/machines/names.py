"""Names that a cluster and its machines have in the kernel, derived from the cluster's name and the node's."""

from __future__ import annotations

import hashlib
import re

from clusterctl_rehearsal.machines.driver import MachineError

BRIDGE = "br0"
ROUTER_MAC = "02:02:00:00:00:01"
"""The bridge's own address. Without it, the kernel would give the bridge the lowest of its ports' addresses: when a
machine comes or goes, the others would lose the router, and the metadata service with it, until they ask for its
address again (up to 45 s, arp(7)). Machines' addresses begin with 02:00 and 02:01."""
MACHINE_INTERFACE = "host0"
LOGIN_USER = "ubuntu"
LOGIN_USER_ID = 1000
CGROUP_FOLDER = "clusterctl"
NETWORK_NAMESPACE_PREFIX = "ccl-"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9@_-]{0,62}")
_INTERFACE_NAME_LENGTH = 15


def checked(word: str) -> str:
    """The word itself; MachineError if it cannot be a cluster's or a machine's name.

    A dot is not allowed: it stands between the two in the name of a namespace.
    """
    if _WORD.fullmatch(word) is None:
        raise MachineError(f"{word!r} cannot name a cluster or machine: letters, digits, - _ @, 63 at most")
    return word


def cluster_namespace(cluster: str) -> str:
    """The network namespace that is the cluster's VPC."""
    return f"{NETWORK_NAMESPACE_PREFIX}{checked(cluster)}"


def machine_namespace(cluster: str, node: str) -> str:
    """The network namespace of one machine."""
    return f"{cluster_namespace(cluster)}.{checked(node)}"


def bridge_port(node: str) -> str:
    """The machine's port on the VPC's bridge: v-<node>, or a digest where that is longer than Linux's 15 characters."""
    name = f"v-{checked(node)}"
    if len(name) <= _INTERFACE_NAME_LENGTH:
        return name
    return f"v{hashlib.sha256(node.encode()).hexdigest()[: _INTERFACE_NAME_LENGTH - 1]}"


def container_name(cluster: str, node: str) -> str:
    """systemd-nspawn's name for the machine: a valid host name, unique on this computer."""
    digest = hashlib.sha256(f"{cluster}/{node}".encode()).hexdigest()[:10]
    stem = re.sub(r"[^A-Za-z0-9-]", "-", f"{cluster}-{node}")[:50].strip("-")
    return f"{stem}-{digest}"
