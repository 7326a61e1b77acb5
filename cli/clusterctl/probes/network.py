"""Which nodes reach which by TCP, on the ports that launchers use, and by which names. Pure."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from clusterctl_infra.outputs import InventoryNode
from clusterctl_infra.strict_json import NotAsExpected, parsed_object

from clusterctl.probes.finding import Finding
from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words
from clusterctl.text.node_set import fold_numbers

NAME = "network"
PORTS = (28500, 29400, 29500, 45000)
"""One of the ports of jobs (28000 to 28999), those of torchrun's c10d and static rendezvous, and one of those that NCCL
and gloo choose from."""
MOST_NODES = 1024
MOST_BYTES = 4 * 1024 * 1024
MOST_ROWS = MOST_NODES * len(PORTS)
AFTER_S = 5
"""What a node may take besides the time for its connections: Python's start, and the last tries."""


@dataclass(frozen=True, kw_only=True)
class Unreached:
    """A port of another node that was not reached."""

    slot: int
    port: int
    why: str


@dataclass(frozen=True, kw_only=True)
class NetworkReading:
    """What one node reports about the others."""

    slot: int
    trouble: str
    """Why it could not listen on its address; empty where it could."""
    busy: tuple[int, ...]
    """Ports of its own that another program has."""
    names: tuple[tuple[str, str], ...]
    """Names of nodes that do not resolve to the node's address there, and what they resolve to."""
    are_names_known: bool
    unreached: tuple[Unreached, ...]


def network_probe(nodes: Sequence[InventoryNode], *, limit_s: float) -> Probe[NetworkReading]:
    """The probe for these nodes, which all have to run it at the same time."""
    rows = [[node.slot, node.name, node.private_ip] for node in nodes]
    question = json.dumps({"nodes": rows, "ports": PORTS, "limit_s": limit_s})
    program = files("clusterctl.on_node").joinpath("check_network.py").read_text(encoding="utf-8")
    return Probe(
        name=NAME,
        meaning="TCP between all nodes, and their names",
        command=shlex.join(["python3", "-I", "-c", program, question]),
        limit_s=math.ceil(limit_s) + AFTER_S,
        parse=parse_network,
    )


def parse_network(text: str) -> NetworkReading:
    """The line that the node's program prints. Raises ProbeUnreadable."""
    lines = text.strip().splitlines()
    try:
        row = parsed_object(lines[-1] if lines else "", most_bytes=MOST_BYTES)
        return NetworkReading(
            slot=row.whole("slot"),
            trouble=row.text("trouble"),
            busy=tuple(each.whole("port") for each in row.objects("busy", most=len(PORTS))),
            names=tuple((each.text("name"), each.text("means")) for each in row.objects("names", most=MOST_NODES)),
            are_names_known=row.flag("are_names_known"),
            unreached=tuple(
                Unreached(slot=each.whole("slot"), port=each.whole("port"), why=each.text("why"))
                for each in row.objects("unreached", most=MOST_ROWS)
            ),
        )
    except NotAsExpected as e:
        raise ProbeUnreadable(f"network: {first_words(text)}") from e


def network_findings(reading: NetworkReading, nodes: Mapping[int, str], *, unheard: Sequence[int]) -> list[Finding]:
    """What is wrong as this node sees it. `nodes`: slot → name; `unheard`: slots whose check did not run."""
    found = []
    if reading.trouble:
        found.append(Finding(level="fault", kind="no port can be opened", detail=reading.trouble))
    ports: dict[tuple[int, str], list[int]] = {}
    for row in reading.unreached:
        if row.slot in nodes and row.slot not in unheard:
            ports.setdefault((row.slot, row.why), []).append(row.port)
    for (slot, why), unreached in ports.items():
        which = "any port" if set(unreached) == set(PORTS) else f"port {fold_numbers(unreached)}"
        found.append(Finding(level="fault", kind=f"does not reach {nodes[slot]}", detail=f"{which}: {why}"))
    for name, means in reading.names:
        found.append(Finding(level="fault", kind=f"{name} does not resolve to its address", detail=means))
    if not reading.are_names_known:
        found.append(Finding(level="fault", kind="looking up the nodes' names got no answer"))
    if reading.busy:
        detail = fold_numbers(reading.busy)
        found.append(Finding(level="remark", kind="ports that another program has", detail=detail))
    return found
