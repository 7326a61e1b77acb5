"""A cluster's network: the VPC is a network namespace with a bridge; each machine has a namespace of its own."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from clusterctl_rehearsal.machines.disturbance import (
    full_rate_argv,
    healing_rules,
    partition_rules,
    rate_argv,
)
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.kernel import inside_network
from clusterctl_rehearsal.machines.names import (
    BRIDGE,
    MACHINE_INTERFACE,
    ROUTER_MAC,
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
        _succeeds(("ip", "netns", "add", namespace))  # may fail if another caller was faster
    batch(namespace, bridge_commands(cidr, gateway_ip), tolerant=True)
    if not bridge_is_up(cluster):
        raise MachineError(f"the network of {cluster} could not be made: no bridge in {namespace}")


def bridge_commands(cidr: str, gateway_ip: str) -> tuple[str, ...]:
    """ip commands that make the bridge; each may find its work done already."""
    prefix_length = ipaddress.ip_network(cidr).prefixlen
    return (
        "link set lo up",
        f"link add {BRIDGE} address {ROUTER_MAC} type bridge forward_delay 0",
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
    if path.exists() and not _succeeds(("ip", "netns", "del", namespace)):
        path.unlink(missing_ok=True)


def attach(cluster: str, node: str, *, address: str, prefix_length: int, gateway_ip: str, mac: str) -> None:
    """Make a machine's namespace with its one interface, configured from outside.

    From outside, because systemd-networkd in the machine costs 13 s of waiting at boot.
    """
    namespace = machine_namespace(cluster, node)
    _run(("ip", "netns", "add", namespace))
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
        _succeeds(("ip", "-n", vpc, "link", "del", bridge_port(node)))
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


def partition(cluster: str, node_a: str, node_b: str) -> None:
    """Part two machines of a cluster."""
    _nft(cluster, partition_rules(node_a, node_b))


def slow(cluster: str, node: str, rate_mbit: int) -> None:
    """Limit both directions of a machine's link."""
    for namespace, interface in _ends(cluster, node):
        _run(("tc", "-n", namespace, *rate_argv(interface, rate_mbit)))


def heal(cluster: str) -> None:
    """End every partition and every limit of a cluster."""
    _nft(cluster, healing_rules())
    for node in machine_namespaces(cluster):
        for namespace, interface in _ends(cluster, node):
            _succeeds(("tc", "-n", namespace, *full_rate_argv(interface)))


def batch(namespace: str, commands: Sequence[str], *, tolerant: bool = False) -> None:
    """Run `ip` commands in a namespace by one process; `tolerant` lets each fail."""
    argv = ["ip", "-n", namespace, *(["-force"] if tolerant else []), "-batch", "-"]
    text = "\n".join(commands)
    done = subprocess.run(argv, input=text, text=True, capture_output=True, timeout=_TIMEOUT_S)
    if done.returncode != 0 and not tolerant:
        raise MachineError(f"the network {namespace} refused a change: {done.stderr.strip()}")


def _ends(cluster: str, node: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (
        (cluster_namespace(cluster), bridge_port(node)),
        (machine_namespace(cluster, node), MACHINE_INTERFACE),
    )


def _nft(cluster: str, script: str) -> None:
    path = NAMESPACE_FOLDER / cluster_namespace(cluster)
    _run(("nsenter", f"--net={path}", "nft", "-f", "-"), script)


def _run(argv: Sequence[str], text: str = "") -> None:
    done = subprocess.run(argv, input=text, text=True, capture_output=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise MachineError(f"{' '.join(argv)}: {done.stderr.strip()}")


def _succeeds(argv: Sequence[str]) -> bool:
    return subprocess.run(argv, capture_output=True, timeout=_TIMEOUT_S).returncode == 0


def _listening(address: str, port: int) -> socket.socket:
    listener = socket.create_server((address, port), backlog=128)
    listener.set_inheritable(False)
    return listener
