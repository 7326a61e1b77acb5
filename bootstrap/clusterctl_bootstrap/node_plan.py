"""The facts of one node at its birth: built by the plan, rendered into the node's birth.json and its other files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

SSH_PORT = 22


@dataclass(frozen=True, kw_only=True)
class MountPlan:
    """A file system that a node mounts before it is ready."""

    path: str
    kind: str
    """`fsx-lustre`, `efs`, `s3` or `nvme`; on hosts `nfs` or `lustre`."""
    source: str = ""
    """`fs-0a….fsx.us-west-2.amazonaws.com@tcp:/mountname`, `fs-0a….efs.us-west-2.amazonaws.com:/`, `bucket/prefix/`;
    nothing for nvme, whose disks the node finds."""
    options: str = ""
    """What the kind's usual options do not say: `region=us-west-2` for s3, `stripe` or `single` for nvme."""
    writable: bool = True
    types: tuple[str, str] | None = None
    """On hosts, what mount(8) and what the kernel call its type; None: the agent knows the kind."""


@dataclass(frozen=True, kw_only=True)
class ScriptPlan:
    """A person's program that a node runs as root."""

    name: str
    """The name of its file and its log."""
    content: str
    when: str
    """`once`: at the first boot; `boot`: at every one."""
    at: str
    """`before-mounts`, `before-ready` or `after-ready`; `mount-clients` of our own, right before the mounts."""
    is_delivered: bool = False
    """Whether user-data has only its hash: `clusterctl up` brings the text over SSH, and the node waits for it."""


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """A node's own facts; peers are computed from `slot_cidr` and `nodes`, never listed."""

    cluster: str
    cluster_id: str
    run: int
    generation: int
    """0 in user-data; pushed files start at 1."""
    slot: int
    rank: int
    nodes: int
    gpus_per_node: int
    slot_cidr: str
    """Slot i has the address `network_address + i`; or all addresses, by slot, with commas between."""
    deadline: datetime
    """UTC."""
    imds: str = "root"
    """`root`: only root reaches 169.254.169.254; `users`: everybody."""
    fabric: str = "none"
    """`efa`: the node has EFA interfaces; `required`: without all of them it fails; `none`."""
    efa_interfaces: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[MountPlan, ...] = ()
    packages: tuple[str, ...] = ()
    scripts: tuple[ScriptPlan, ...] = ()
    host_user: str | None = None
    """The login user of a host, which nothing of ours ends; None: a machine that clusterctl made."""
    ssh_port: int = SSH_PORT
    """The port of this node's SSH server, for the other nodes."""


@dataclass(frozen=True, kw_only=True)
class NodeTrust:
    """What the nodes of a cluster know each other by; only the node key and the barrier's secret are secrets."""

    node_private_key: str = field(repr=False)
    """openssh-key-v1 PEM: opens the login user's account on every node, from the cluster's own addresses."""
    node_public_key: str
    host_authority: str
    """The public key that signed every node's host certificate."""
    host_certificate: str
    """The certificate of this node's host key, for its names and its address."""
    barrier_secret: str = field(repr=False)
    """64 hex digits."""


@dataclass(frozen=True, kw_only=True)
class NodeAccess:
    """Who may log in and how the node proves itself; the private key is a secret."""

    user: str
    authorized_keys: tuple[str, ...]
    host_private_key: str = field(repr=False)
    """openssh-key-v1 PEM."""
    host_public_key: str
    trust: NodeTrust
