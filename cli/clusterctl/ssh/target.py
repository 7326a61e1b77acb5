"""Where a node is dialled and which host key it must show, from the inventory alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl_infra.host_and_port import joined
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.shared_session_argv import by_shared_session
from clusterctl.ssh.way_in import uses_session_manager


@dataclass(frozen=True, kw_only=True)
class Target:
    """One node as an SSH client sees it."""

    name: str
    host: str
    port: int
    user: str
    host_key_type: str
    host_key: str
    """The declared public key in base64, as in known_hosts."""
    proxy_argv: tuple[str, ...] | None

    @property
    def place(self) -> str:
        """`10.0.8.2:22`, for messages."""
        return joined(self.host, self.port)


def target_of(inventory: Inventory, node: InventoryNode) -> Target:
    """How to reach `node`. Raises NodeFailure when it has no address or no usable declared key yet."""
    host = node.public_ip if inventory.ssh.address == "public" else node.private_ip
    if not host:
        raise NodeFailure("unreachable", f"{node.name} has no {inventory.ssh.address} address yet")
    words = node.host_public_key.split()
    if len(words) < 2:
        raise NodeFailure("host-key", f"{node.name} has no declared host key in the inventory")
    own = node if isinstance(node, PersonsNode) else None
    port = port_of(inventory, node)
    way = proxy_argv(inventory, node, host=host, port=port)
    return Target(
        name=node.name,
        host=host,
        port=port,
        user=inventory.ssh.user if own is None or own.user is None else own.user,
        host_key_type=words[0],
        host_key=words[1],
        proxy_argv=way if own is None or own.proxy_argv is None else own.proxy_argv,
    )


def port_of(inventory: Inventory, node: InventoryNode) -> int:
    """The port of the node's SSH server."""
    return inventory.ssh.port if node.port is None else node.port


def proxy_argv(inventory: Inventory, node: InventoryNode, *, host: str, port: int | str) -> tuple[str, ...] | None:
    """The proxy command with `{host}`, `{port}` and `{instance_id}` filled in; other braces stay.

    None without one. A session of Session Manager is opened only where the session that the cluster's nodes share does
    not lead to the node. Raises NodeFailure when the command needs a machine that is not there yet.
    """
    command = inventory.ssh.proxy_command
    if command is None:
        return None
    if node.instance_id is None and names_machine(command):
        raise NodeFailure("unreachable", f"{node.name} has no machine yet")
    values = {"{host}": host, "{port}": str(port), "{instance_id}": node.instance_id or ""}
    argv = tuple(_filled(word, values) for word in command)
    if not uses_session_manager(command) or isinstance(node, PersonsNode):
        return argv
    return by_shared_session(inventory.cluster, host=host, port=port, session=argv)


def names_machine(command: tuple[str, ...] | None) -> bool:
    """Whether the proxy command asks for an instance id."""
    return any("{instance_id}" in word for word in command or ())


def _filled(word: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        word = word.replace(placeholder, value)
    return word


@dataclass(frozen=True, kw_only=True)
class PersonsNode(InventoryNode):
    """A machine from a person's file, with its own settings; where one is None the inventory's setting holds."""

    user: str | None = None
    proxy_argv: tuple[str, ...] | None = None
    identity_files: tuple[str, ...] = ()
    identity_agent: str | None = None
    has_identities_only: bool = False
