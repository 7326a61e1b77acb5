"""Where a node is dialled and what it must prove: from the inventory, pure."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.failures import NodeFailure


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
        return f"{self.host}:{self.port}"


def target_of(inventory: Inventory, node: InventoryNode) -> Target:
    """How to reach `node`. Raises NodeFailure when it has no address or no usable declared key yet."""
    host = node.public_ip if inventory.ssh.address == "public" else node.private_ip
    if not host:
        raise NodeFailure("unreachable", f"{node.name} has no {inventory.ssh.address} address yet")
    words = node.host_public_key.split()
    if len(words) < 2:
        raise NodeFailure("host-key", f"{node.name} has no declared host key in the inventory")
    port = inventory.ssh.port
    return Target(
        name=node.name,
        host=host,
        port=port,
        user=inventory.ssh.user,
        host_key_type=words[0],
        host_key=words[1],
        proxy_argv=proxy_argv(inventory.ssh.proxy_command, host=host, port=str(port)),
    )


def proxy_argv(command: tuple[str, ...] | None, *, host: str, port: str) -> tuple[str, ...] | None:
    """The proxy command with `{host}` and `{port}` filled in; other braces stay."""
    if command is None:
        return None
    return tuple(word.replace("{host}", host).replace("{port}", port) for word in command)
