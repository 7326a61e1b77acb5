"""What AWS says about one instance type, and the network interfaces that a node of it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FIRST_LAYOUT, NEWEST_LAYOUT = 1, 2
"""How interfaces are laid out; a cluster keeps the layout that it was born with, since a change would replace machines.

In layout 2 a type with one card and one EFA has one interface for both, so that AWS gives it a public address
automatically; in layout 1 it had two, and each node needed an elastic IP.
"""
InterfaceKind = Literal["interface", "efa", "efa-only"]
Interface = tuple[int, int, InterfaceKind]
"""(network card index, device index, kind); (0, 0, …) is the primary one and the only one with an address."""


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One row of the catalog; all counts are per node."""

    name: str
    vcpus: int
    memory_mib: int
    gpu_count: int
    """0 for CPU types."""
    gpu_name: str | None
    """As people say it: `H100 80GB`."""
    gpu_memory_mib: int
    """Of one GPU, as the EC2 API gives it; 0 for CPU types."""
    gpu_api_name: str | None
    """As the EC2 API says it: `H100`."""
    architecture: str
    """`x86_64` or `arm64`."""
    network_cards: int
    max_efa_interfaces: int
    """0: the type has no EFA."""
    max_interfaces_per_card: int
    network_gbps: float
    """Of all EFA interfaces; without EFA, the baseline of all cards."""
    nvme_gb: int
    usage_classes: tuple[str, ...]
    """Some of `on-demand`, `spot`, `capacity-block`."""
    topology_levels: int
    """Length of NetworkNodes in DescribeInstanceTopology; 0: not supported."""
    placement_group_cluster: bool

    @property
    def family(self) -> str:
        """The part before the dot: `p5`."""
        return self.name.partition(".")[0]

    @property
    def has_efa(self) -> bool:
        return self.max_efa_interfaces > 0

    def interfaces(self, *, fabric: bool = True, layout: int = NEWEST_LAYOUT) -> tuple[Interface, ...]:
        """All interfaces of a node, the primary one first; without `fabric`, that one alone.

        The layout of AWS ParallelCluster (queues_stack.py, `add_network_interfaces`, commit 03b015a): card 0
        carries EFA only where every card does (p6-b300 has 17 cards and 16 EFA), and secondary cards use
        device 1, because several readers take "device 0" for "the primary interface".
        """
        if not fabric or not self.has_efa:
            return ((0, 0, "interface"),)
        if layout >= 2 and self.network_cards == self.max_efa_interfaces == 1:
            return ((0, 0, "efa"),)
        if self.max_efa_interfaces != self.network_cards:
            first: tuple[Interface, ...] = ((0, 0, "interface"),)
        elif self.max_interfaces_per_card == 1:
            first = ((0, 0, "efa"),)
        else:
            first = ((0, 0, "interface"), (0, 1, "efa-only"))
        device = 0 if self.max_interfaces_per_card == 1 else 1
        others: tuple[Interface, ...] = tuple((card, device, "efa-only") for card in range(1, self.network_cards))
        return first + others
