"""What NCCL, gloo and tensorpipe have to be told: as little as possible, computed on this machine.

The EFA plugin and NCCL choose everything else better than a file can (aws-ofi-nccl, src/platform-aws.cpp; NCCL's user
guide, environment variables; 2026-11).
"""

import os
from pathlib import Path
from typing import Any, Dict, List, Mapping

from clusterctl_bootstrap.node.environment import Variable

EVERYWHERE = "00000000"
UP, REJECT = 0x1, 0x200
"""Flags of a route (linux/route.h)."""


def computed(root: Path, facts: Mapping[str, Any]) -> List[Variable]:
    """The rows of the environment that depend on the machine; without a default route NCCL chooses an interface."""
    values: Dict[str, str] = {"NCCL_DEBUG": "WARN"}
    interface = default_interface(text(root / "proc/net/route"))
    if interface:
        values.update(sockets(interface))
    if facts.get("fabric") == "required":
        # The plugin's name in all its releases; NCCL then takes this network or none.
        values["NCCL_NET"] = "AWS Libfabric"
    return [Variable(name, value, "NCCL") for name, value in values.items()]


def sockets(interface: str) -> Dict[str, str]:
    """The variables that name an interface: NCCL takes names as prefixes unless `=` precedes them, the others know
    only exact names.
    """
    return {"NCCL_SOCKET_IFNAME": "=" + interface, "GLOO_SOCKET_IFNAME": interface, "TP_SOCKET_IFNAME": interface}


def default_interface(routes: str) -> str:
    """The interface of the default route with the lowest metric in /proc/net/route; empty without one."""
    found = []
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == EVERYWHERE and int(fields[3], 16) & (UP | REJECT) == UP:
            found.append((int(fields[6]), fields[0]))
    return min(found)[1] if found else ""


def efa_count(root: Path) -> int:
    """How many EFA devices this machine has."""
    return list(adapters(root).values()).count("efa")


def adapters(root: Path) -> Dict[str, str]:
    """RDMA devices of this machine, in the order of their numbers, and the driver of each: `efa`, `mlx5_core`, …"""
    found = (root / "sys/class/infiniband").glob("*/device/driver")
    drivers = {path.parts[-3]: os.path.basename(os.path.realpath(str(path))) for path in found}
    return dict(sorted(drivers.items(), key=lambda item: (len(item[0]), item[0])))


def text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
