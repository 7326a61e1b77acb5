"""Reads an InfiniBand subnet from ibnetdiscover's output, and finds the switches that each host is linked to. Pure.

The format: rdma-core, infiniband-diags/ibnetdiscover.c (out_switch, out_switch_port, out_ca, out_ca_port) and
man/ibnetdiscover.8.in.rst, "Topology file format" (2026-11-26).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clusterctl_infra.ranks import NetworkPath

from clusterctl.probes.probe import ProbeUnreadable, first_words

_NODE = re.compile(r'(?:Switch|Ca|Rt)\s+\d+\s+"([SHR]-[0-9a-f]{16})"', re.ASCII)
"""`Switch  36 "S-ec0d9a0300ec8240"`: a node and how many ports it has; then come its links, one on each line."""
_LINK = re.compile(r'\[\d+\](?:\[ext \d+\])?\s*(?:\((?:0x)?[0-9a-f]+\))?\s*"([SHR]-[0-9a-f]{16})"\[\d+\]', re.ASCII)
"""A link: `[1] "H-506b4b03003fa9b6"[1](506b4b03003fa9b6)` below a switch, `[1](8f10403960985) "S-0008f10400410015"[6]`
below an adapter. `[ext N]`, an external port of a chassis, is printed only with --grouping."""


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """Which nodes of a subnet are linked, as S-GUID (a switch), H-GUID (an adapter) or R-GUID (a router)."""

    links: frozenset[tuple[str, str]]
    """(node, node) for each link, in both directions."""


def parse_fabric(text: str) -> Fabric:
    """The links in what ibnetdiscover printed, with its comments or without. Raises ProbeUnreadable."""
    links, node = set(), None
    for line in text.splitlines():
        if (found := _NODE.match(line.strip())) is not None:
            node = found[1]
        elif node is not None and (found := _LINK.match(line.strip())) is not None:
            links |= {(node, found[1]), (found[1], node)}
    if node is None:
        raise ProbeUnreadable(f"it lists no switch and no adapter: {first_words(text)}")
    return Fabric(links=frozenset(links))


def switch_paths(fabric: Fabric, adapters: Sequence[Collection[str]]) -> tuple[NetworkPath, ...]:
    """Each host's path in the network, from the top down; empty if the fabric does not show the host.

    `adapters`: for each host the node GUIDs of its adapters. A path has three levels: hosts whose leaf switches share a
    switch above them (a pod of a fat tree); hosts that share a leaf switch, like those of a rail-optimised group; hosts
    with exactly the same leaf switches. Since sharing one is enough, a host with a broken link stays with its
    neighbours.
    """
    switches: dict[str, set[str]] = {}
    for node, other in fabric.links:
        switches.setdefault(node, set()).update([other] if other.startswith("S-") else ())
    leaves = [set[str]().union(*(switches.get(f"H-{guid}", ()) for guid in each)) for each in adapters]
    around = [each.union(*(switches[leaf] for leaf in each)) for each in leaves]
    rows = zip(_groups(around), _groups(leaves), leaves, strict=True)
    return tuple((f"pod {pod}", f"group {group}", " ".join(sorted(own))) if own else () for pod, group, own in rows)


def _groups(sets: Sequence[Collection[str]]) -> list[int]:
    """For each set the index of the first one that it shares members with, directly or through other sets."""
    firsts = list(range(len(sets)))

    def first_of(index: int) -> int:
        while firsts[index] != index:
            index = firsts[index]
        return index

    owners: dict[str, int] = {}
    for index, members in enumerate(sets):
        for member in members:
            left, right = sorted((first_of(owners.setdefault(member, index)), first_of(index)))
            firsts[right] = left
    return [first_of(index) for index in range(len(sets))]
