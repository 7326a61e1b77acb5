"""A cluster as OpenSSH's client configuration."""

from __future__ import annotations

from pathlib import Path

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.host_key import signature_algorithms
from clusterctl.ssh.single.system_ssh import ALIVE_COUNT, ALIVE_INTERVAL_S, proxy_line, quoted_path
from clusterctl.ssh.target import names_machine, port_of, proxy_argv


def ssh_config_text(inventory: Inventory, *, key_file: Path | None, known_hosts: Path) -> str:
    """One `Host` per node with its address, then what all of them share; a comment for a node without an address."""
    blocks = [f"# {inventory.cluster}, by: clusterctl ssh-config --cluster {inventory.cluster}"]
    blocks += [_host(inventory, node) for node in inventory.nodes]
    if inventory.nodes:
        blocks.append(_shared(inventory, key_file=key_file, known_hosts=known_hosts))
    return "\n\n".join(blocks)


def _host(inventory: Inventory, node: InventoryNode) -> str:
    address = node.public_ip if inventory.ssh.address == "public" else node.private_ip
    if not address:
        return f"# {node.name} has no {inventory.ssh.address} address yet"
    if node.instance_id is None and names_machine(inventory.ssh.proxy_command):
        return f"# {node.name} has no machine yet"
    settings = [
        f"Host {node.name}",
        f"HostName {address}",
        *([] if node.port is None else [f"Port {node.port}"]),
        f"HostKeyAlias {node.name}",
        f"HostKeyAlgorithms {','.join(signature_algorithms(node.host_public_key.split()[0]))}",
        f"ProxyCommand {_proxy_line(inventory, node)}",
    ]
    return "\n    ".join(settings if names_machine(inventory.ssh.proxy_command) else settings[:-1])


def _proxy_line(inventory: Inventory, node: InventoryNode) -> str:
    argv = proxy_argv(inventory, node, host=node.private_ip, port=port_of(inventory, node))
    return "" if argv is None else proxy_line(argv)


def _shared(inventory: Inventory, *, key_file: Path | None, known_hosts: Path) -> str:
    settings = [
        f"User {inventory.ssh.user}",
        f"Port {inventory.ssh.port}",
        f"UserKnownHostsFile {quoted_path(known_hosts)}",
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "UpdateHostKeys no",
        f"ServerAliveInterval {ALIVE_INTERVAL_S}",
        f"ServerAliveCountMax {ALIVE_COUNT}",
    ]
    if key_file is not None:
        settings += [f"IdentityFile {quoted_path(key_file)}", "IdentitiesOnly yes"]
    if inventory.ssh.proxy_command is not None and not names_machine(inventory.ssh.proxy_command):
        # ssh replaces %h and %p by each node's address and port; so these two must not be escaped, and all else must.
        line = proxy_line(inventory.ssh.proxy_command).replace("'{host}'", "%h").replace("'{port}'", "%p")
        settings.append(f"ProxyCommand {line.replace('{host}', '%h').replace('{port}', '%p')}")
    names = " ".join(node.name for node in inventory.nodes)
    return "\n    ".join([f"Host {names}", *settings])
