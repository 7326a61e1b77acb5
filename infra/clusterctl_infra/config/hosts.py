"""What cluster.yaml may say with `target: hosts`: existing machines, such as bare metal with InfiniBand."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from clusterctl_infra.config.fields import (
    Bastion,
    Duration,
    Env,
    Name,
    NodePrice,
    Owner,
    PublicKey,
    Text,
    check_form,
    check_text,
)
from clusterctl_infra.config.hooks import Package, ScriptConfig, or_texts
from clusterctl_infra.config.hosts_storage import HostStorageConfig
from clusterctl_infra.config.storage import STRICT
from clusterctl_infra.host_and_port import HIGHEST_PORT, SSH_PORT

NOT_BUILT = {
    "workflow_storage": "it needs a bucket that nodes mount, and hosts mount only NFS and Lustre",
}
"""Keys that clusters on AWS have, and hosts may have one day."""
OF_AWS = (
    *("region", "zone", "instance_type", "image", "root_disk", "placement", "capacity", "reservation"),
    *("capacity_block", "network", "access", "imds", "kms_key", "permissions_boundary", "tags"),
)
BOUNDS_NOTHING = (
    "nothing ends machines that are not clusterctl's, so it would bound nothing; runtime alone is kept, as advice"
)
CAPS = ("price_usd_per_hour", "total_usd_per_hour", "budget_usd", "idle", "dead_man")
"""Caps that clusters on AWS have and hosts do not."""


def check_address(value: object) -> str:
    """An IP address or a host's name. Raises ValueError."""
    text = check_text(value).strip()
    if is_ip(text):
        return canonical(text)
    if ":" in text or "[" in text:
        raise ValueError("not an address; IPv6 has no brackets here, and a port is a key of its own: port: 2222")
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", text, re.ASCII):
        raise ValueError("not an IP address or a host's name")
    if re.fullmatch(r"[0-9.]+", text):
        raise ValueError("not an IPv4 address")
    return text


def check_private_ip(value: object) -> str:
    """An IP address. Raises ValueError."""
    text = check_text(value).strip()
    if not is_ip(text):
        raise ValueError("not an IP address such as 10.1.0.5 or fd00::5")
    return canonical(text)


def check_login(value: object) -> str:
    """The name of a user on Linux (useradd(8)). Raises ValueError."""
    message = "not a user's name: lower-case letters, digits, _ and -, at most 32"
    return check_form(value, r"[a-z_][a-z0-9_-]{0,31}", message)


def check_gpus(value: object) -> str:
    """`8`, or `h100:8`. Raises ValueError."""
    message = "write how many GPUs each host has, such as 8 or h100:8"
    return check_form(check_text(value).lower(), r"([a-z0-9][a-z0-9.-]*:)?([1-9]|[1-9][0-9])", message)


def check_port(value: object) -> int:
    """A port. Raises ValueError."""
    text = check_text(value).strip()
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text, re.ASCII) or int(text) > HIGHEST_PORT:
        raise ValueError(f"not a port, which is a number from 1 to {HIGHEST_PORT}")
    return int(text)


Port = Annotated[
    int,
    BeforeValidator(check_port),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": HIGHEST_PORT, "examples": [2222]}),
]
_ADDRESS = {"type": "string", "examples": ["10.1.0.5", "gpu-a.example.com"]}


class HostConfig(BaseModel):
    """One machine; a text is short for its address."""

    model_config = STRICT
    address: Annotated[str, BeforeValidator(check_address), WithJsonSchema(_ADDRESS)] = Field(
        description="Where SSH reaches it: an IP address or a name.",
        examples=["10.1.0.5", "fd00::5", "gpu-a.example.com"],
    )
    port: Port = Field(default=SSH_PORT, description="The port of the SSH server at `address`.")
    private_ip: Annotated[str, BeforeValidator(check_private_ip)] | None = Field(
        default=None,
        description="Where the other hosts reach it; left out: `address`, which then has to be an IP address. The "
        "addresses of all hosts are of one family, IPv4 or IPv6.",
        examples=["10.1.0.5", "fd00::5"],
    )
    private_port: Port | None = Field(
        default=None,
        description="The port of the SSH server at `private_ip`, if it is another one; left out: `port`.",
        examples=[22],
    )
    host_key: PublicKey | None = Field(
        default=None,
        description="The host's public key; left out: `ssh.known_hosts` declares it.",
        examples=["ssh-ed25519 AAAA…"],
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"address": value} if isinstance(value, str) else value


class HostsSshConfig(BaseModel):
    """How the hosts are reached."""

    model_config = STRICT
    user: Annotated[str, BeforeValidator(check_login)] = Field(
        description="The login user, the same on all hosts, with sudo that asks for no password.", examples=["ada"]
    )
    key_file: Text | None = Field(
        default=None,
        description="The private key; left out: your agent's keys, then ~/.ssh/id_ed25519 and the other usual ones.",
        examples=["~/.ssh/lab"],
    )
    known_hosts: Text | None = Field(
        default=None,
        description="A known_hosts file that declares the keys of hosts without `host_key`.",
        examples=["~/.ssh/known_hosts"],
    )
    bastion: Bastion | None = Field(
        default=None,
        description="A host through which the others are reached, with your own ssh settings.",
        examples=["ada@bastion.example.com"],
    )


class HostsCapsConfig(BaseModel):
    """Caps that are only advice: clusterctl never ends machines of somebody else."""

    model_config = STRICT
    runtime: Duration | None = Field(
        default=None,
        description="How long you mean to use the hosts, from the first `up`. Afterwards `status` reminds you; nothing "
        "ends.",
        examples=["7d"],
    )


class HostsConfig(BaseModel):
    """One cluster of existing machines, as its cluster.yaml describes it."""

    model_config = STRICT
    target: Literal["hosts"] = Field(description="Existing machines, instead of AWS.")
    name: Name = Field(description="Names the cluster `NAME@hosts`, and its nodes `NAME-0`, `NAME-1`, …")
    hosts: tuple[HostConfig, ...] = Field(
        description="The machines, in the order of their slots.", json_schema_extra=or_texts
    )
    ssh: HostsSshConfig = Field(description="How they are reached.")
    gpus: Annotated[str, BeforeValidator(check_gpus), WithJsonSchema({"type": "string"})] | None = Field(
        default=None,
        description="GPUs of each host, the same on all; `up` compares it with nvidia-smi. Left out: none.",
        examples=["h100:8", "8"],
    )
    fabric: Literal["auto", "infiniband"] = Field(
        default="auto",
        description="`auto`: NCCL's variables name InfiniBand on hosts that have it; `infiniband`: each host needs an "
        "ACTIVE port.",
    )
    env: Env = Field(
        default_factory=dict,
        description="Environment variables of every login and job. Commands over SSH do not get those that change "
        "which programs run, such as PATH and LD_LIBRARY_PATH ([why](hosts.md#what-is-written-on-a-host)).",
        examples=[{"NCCL_DEBUG": "INFO"}],
    )
    storage: tuple[HostStorageConfig, ...] = Field(
        default=(),
        description="What nodes mount. A path where something is mounted already, or where files lie, is refused.",
    )
    packages: tuple[Package, ...] = Field(
        default=(),
        description="Packages that hosts install, by apt-get or dnf; `down` leaves them installed.",
        examples=[["nfs-common"]],
    )
    scripts: tuple[ScriptConfig, ...] = Field(
        default=(),
        description="Files that hosts run as root, in this order, and again when their text has changed; `setup.sh` is "
        "short for `{run: setup.sh}`. `down` undoes nothing that they did.",
        json_schema_extra=or_texts,
    )
    ranks: Literal["slot", "topology"] = Field(
        default="slot",
        description="`slot`: the rank is the slot; `topology`: hosts at one InfiniBand switch get neighbouring ranks; "
        "`ibnetdiscover` is asked once, and the order is kept ([how](hosts.md#infiniband)).",
    )
    price_usd_per_hour: NodePrice | None = Field(
        default=None, description="What one host costs its owner, to be displayed; left out: unknown."
    )
    caps: HostsCapsConfig = Field(default_factory=HostsCapsConfig, description="Advice: nothing ends the hosts.")
    owner: Owner | None = Field(
        default=None,
        description="Whom to ask about the cluster; left out: the login name of the person who ran `up`.",
    )

    @property
    def private_ips(self) -> tuple[str, ...]:
        """The addresses at which the nodes reach each other, by slot."""
        return tuple(host.private_ip or host.address for host in self.hosts)

    @property
    def gpus_per_node(self) -> int:
        """How many GPUs each host has, as cluster.yaml says."""
        return 0 if self.gpus is None else int(self.gpus.rpartition(":")[2])

    @property
    def gpu_name(self) -> str | None:
        """`H100`; None where only the number was written."""
        return None if self.gpus is None else self.gpus.rpartition(":")[0].upper() or None


def misplaced_keys(tree: Mapping[str, object]) -> dict[tuple[str, ...], str]:
    """Path → sentence for each key that clusters on AWS have and hosts do not."""
    found: dict[tuple[str, ...], str] = {(key,): why for key, why in NOT_BUILT.items() if key in tree}
    found |= {(key,): "for clusters on AWS only; leave it out" for key in OF_AWS if key in tree}
    if "nodes" in tree:
        found[("nodes",)] = "the list hosts says how many; leave it out"
    caps = tree.get("caps")
    if isinstance(caps, dict):
        found |= {("caps", key): BOUNDS_NOTHING for key in CAPS if key in caps}
    return found


def is_ip(text: str) -> bool:
    """Whether it is an IP address rather than a name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def canonical(text: str) -> str:
    """The address as the kernel writes it (RFC 5952). Raises ValueError for one that leads to no other machine."""
    found = ipaddress.ip_address(text)
    if found.is_loopback or found.is_multicast or found.is_unspecified:
        raise ValueError("an address that leads to no other machine")
    if found.version == 6 and found.is_link_local:
        raise ValueError("a link-local address, which leads nowhere without an interface's name")
    if found.version == 6 and found.ipv4_mapped is not None:
        raise ValueError(f"an IPv4 address written as IPv6; write {found.ipv4_mapped}")
    return str(found)
