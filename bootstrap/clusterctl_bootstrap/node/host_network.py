"""Network settings for NCCL and similar libraries on a host, which may have several networks, and InfiniBand, which AWS
machines lack.

It comes to hosts with the rest of the agent, and to other nodes, which do not use it, with their membership.
"""

import re
from pathlib import Path
from typing import Any, Dict, List, Mapping

from clusterctl_bootstrap.node import nccl
from clusterctl_bootstrap.node.environment import Variable, address
from clusterctl_bootstrap.node.outside import Outside

CARRIES = re.compile(r"^\d+: (\S+) +inet6? ", re.MULTILINE)


def on_host(root: Path, facts: Mapping[str, Any], outside: Outside) -> List[Variable]:
    """The rows of the environment that depend on the machine; on a host they replace those that other nodes have.

    The default route may lead out of another network than the one in which hosts reach each other: the interface is
    the one that carries the host's own address among the nodes, if `ip` knows it.
    """
    rows: Dict[str, Variable] = {row.name: row for row in nccl.computed(root, facts)}
    values: Dict[str, str] = {}
    own = address(facts["slot_cidr"], facts["slot"])
    interface = interface_of(own, outside)
    if interface:
        values.update(nccl.sockets(interface))
    if ":" in own:  # if an interface has both families, NCCL takes the first that it meets (NCCL user guide)
        values["NCCL_SOCKET_FAMILY"] = "AF_INET6"
    ports = infiniband_ports(root)
    if ports:
        values["NCCL_IB_HCA"] = "=" + ",".join(ports)
    rows.update({name: Variable(name, value, "NCCL") for name, value in values.items()})
    return list(rows.values())


def interface_of(own: str, outside: Outside) -> str:
    """The interface that carries the address; empty where `ip` does not say, or only the loopback has it.

    A line is `2: ens32    inet 10.1.0.5/24 brd 10.1.0.255 scope global ens32 …`. If hosts are reached through routers,
    the address may be the loopback's second one, and told `lo`, NCCL and gloo would take its first.
    """
    code, output = outside.run(["ip", "-o", "addr", "show", "to", own])
    found = [name for name in CARRIES.findall(output) if code == 0 and name != "lo"]
    return found[0] if found else ""


def infiniband_ports(root: Path) -> List[str]:
    """`mlx5_0:1` for each port of a Mellanox adapter that speaks InfiniBand: Ethernet ports are for storage."""
    names = [name for name, driver in nccl.adapters(root).items() if driver.startswith("mlx5")]
    ports = [port for name in names for port in sorted((root / "sys/class/infiniband" / name / "ports").glob("*"))]
    return ["%s:%s" % (port.parts[-3], port.name) for port in ports if nccl.text(port / "link_layer") == "InfiniBand\n"]
