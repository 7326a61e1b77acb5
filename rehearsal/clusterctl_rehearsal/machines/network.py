"""A cluster's network: one namespace with a bridge is the VPC, each machine has its own."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.kernel import inside_network
from clusterctl_rehearsal.machines.names import (
    BRIDGE,
    MACHINE_INTERFACE,
    bridge_port,
    cluster_namespace,
    machine_namespace,
)

NAMESPACE_FOLDER = Path("/run/netns")
_TIMEOUT_S = 20.0


def create(cluster: str, cidr: str, gateway_ip: str) -> None:
    """Make the VPC's namespace and its bridge, which carries the gateway address."""
    namespace = cluster_namespace(cluster)
    if not (NAMESPACE_FOLDER / namespace).exists():
        _ip("netns", "add", namespace)
    batch(namespace, bridge_commands(cidr, gateway_ip), tolerant=True)
    if not bridge_is_up(cluster):
        raise MachineError(f"the network of {cluster} could not be made: no bridge in {namespace}")


def bridge_commands(cidr: str, gateway_ip: str) -> tuple[str, ...]:
    """ip commands that make the bridge; each may find its work done already."""
    prefix_length = ipaddress.ip_network(cidr).prefixlen
    return (
        "link set lo up",
        f"link add {BRIDGE} type bridge forward_delay 0",
        f"addr replace {gateway_ip}/{prefix_length} dev {BRIDGE}",
        f"link set {BRIDGE} up",
    )


def bridge_is_up(cluster: str) -> bool:
    """Whether the cluster's namespace is there and has its bridge."""
    path = NAMESPACE_FOLDER / cluster_namespace(cluster)
    try:
        return BRIDGE in inside_network(str(path), lambda: [name for _, name in socket.if_nameindex()])
    except OSError:  # absent, or a file left where a namespace was mounted
        return False


def delete(cluster: str) -> None:
    """Remove the VPC's namespace; its bridge goes with it."""
    delete_namespace(cluster_namespace(cluster))


def delete_namespace(namespace: str) -> None:
    """Remove a namespace and its file, whichever of the two is there."""
    path = NAMESPACE_FOLDER / namespace
    if path.exists() and not _try_ip("netns", "del", namespace):
        path.unlink(missing_ok=True)


def attach(
    cluster: str, node: str, *, address: str, prefix_length: int, gateway_ip: str, mac: str
) -> None:
    """Make a machine's namespace with its one interface, configured from outside.

    From outside, because systemd-networkd in the machine costs 13 s of waiting at boot.
    """
    namespace = machine_namespace(cluster, node)
    _ip("netns", "add", namespace)
    port = bridge_port(node)
    batch(
        cluster_namespace(cluster),
        (
            f"addr replace {gateway_ip}/{prefix_length} dev {BRIDGE}",
            f"link add {port} type veth peer name {MACHINE_INTERFACE} netns {namespace}",
            f"link set {port} master {BRIDGE} up",
        ),
    )
    batch(
        namespace,
        (
            "link set lo up",
            f"link set {MACHINE_INTERFACE} address {mac}",
            f"addr add {address}/{prefix_length} dev {MACHINE_INTERFACE}",
            f"link set {MACHINE_INTERFACE} up",
            f"route add default via {gateway_ip}",
        ),
    )


def detach(cluster: str, node: str) -> None:
    """Remove a machine's namespace and its port; nothing happens if they are gone.

    The port goes first and by name: the kernel would take it away only some time after
    the namespace, and a machine of the same name may be next.
    """
    vpc = cluster_namespace(cluster)
    if (NAMESPACE_FOLDER / vpc).exists():
        _try_ip("-n", vpc, "link", "del", bridge_port(node))
    delete_namespace(machine_namespace(cluster, node))


def machine_namespaces(cluster: str) -> tuple[str, ...]:
    """The machines of a cluster that have a namespace."""
    prefix = f"{cluster_namespace(cluster)}."
    return tuple(sorted(path.name[len(prefix) :] for path in NAMESPACE_FOLDER.glob(f"{prefix}*")))


def listen(cluster: str, address: str, port: int) -> socket.socket:
    """A listening socket in the VPC; the address is added to the bridge, so machines reach it."""
    namespace = cluster_namespace(cluster)
    path = NAMESPACE_FOLDER / namespace
    if not path.exists():
        raise MachineError(f"cluster {cluster} has no network on this computer")
    batch(namespace, (f"addr replace {address}/32 dev {BRIDGE}",))
    return inside_network(str(path), lambda: _listening(address, port))


def set_plugged(cluster: str, node: str, *, plugged: bool) -> None:
    """Raise or lower the machine's port on the bridge."""
    state = "up" if plugged else "down"
    batch(cluster_namespace(cluster), (f"link set {bridge_port(node)} {state}",))


def batch(namespace: str, commands: Sequence[str], *, tolerant: bool = False) -> None:
    """Run `ip` commands in a namespace by one process; `tolerant` lets each fail."""
    argv = ["ip", "-n", namespace, *(["-force"] if tolerant else []), "-batch", "-"]
    done = subprocess.run(
        argv, input="\n".join(commands), text=True, capture_output=True, timeout=_TIMEOUT_S
    )
    if done.returncode != 0 and not tolerant:
        raise MachineError(f"the network {namespace} refused a change: {done.stderr.strip()}")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], text=True, capture_output=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise MachineError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _try_ip(*arguments: str) -> bool:
    done = subprocess.run(["ip", *arguments], capture_output=True, timeout=_TIMEOUT_S)
    return done.returncode == 0


def _listening(address: str, port: int) -> socket.socket:
    listener = socket.create_server((address, port), backlog=128)
    listener.set_inheritable(False)
    return listener
