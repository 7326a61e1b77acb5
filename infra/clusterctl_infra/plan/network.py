"""The addresses of a cluster: which range belongs to slots, which slot has which address, how nodes get public ones."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from clusterctl_infra.adopted import AdoptedNetwork
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.plan.model import NetworkPlan, PublicAddresses

SUBNET_PREFIXES = range(16, 29)
"""AWS makes subnets from /16 to /28 (EC2 API, CreateSubnet)."""
ELASTIC_IP_QUOTA = 5
"""Default per region (service quota L-0263D0A3); a higher one cannot be seen from here."""
ROOM_TO_GROW = (4, 2, 1)
KEPT_AT_START = 4
"""AWS keeps this many addresses at the start of each subnet, and one at its end (VPC User Guide, "Subnet CIDR")."""
RESERVED_AT_END = 1
"""The last address of a subnet is AWS's, and slots have its upper half."""


def network_plan(
    config: ClusterConfig, *, interfaces_per_node: int, found: AdoptedNetwork | None = None
) -> NetworkPlan:
    """The network; the slot range depends on the node subnet alone, never on the number of nodes.

    `found`: the network that exists, as it was looked up; without it, an adopted network has the ranges of a new one.
    """
    network = config.network
    adopted = network.adopt
    subnet_cidr = str(network.node_subnet_cidr) if found is None else found.subnet_cidr
    return NetworkPlan(
        vpc_cidr=str(network.vpc_cidr),
        node_subnet_cidr=subnet_cidr,
        slot_cidr=str(upper_half(IPv4Network(subnet_cidr))) if found is None else found.slot_cidr,
        service_subnet_cidr=str(network.service_subnet_cidr),
        adopted_vpc_id=None if adopted is None else adopted.vpc_id,
        adopted_node_subnet_id=None if adopted is None else adopted.node_subnet_id,
        adopted_service_subnet_id=None if adopted is None else adopted.service_subnet_id,
        is_looked_up=adopted is None or found is not None,
        public_addresses=_public_addresses(config, interfaces_per_node),
        ssh_cidrs=tuple(str(cidr) for cidr in config.access.ssh_from),
    )


def upper_half(subnet: IPv4Network) -> IPv4Network:
    """The half of a subnet that slots live in: AWS's four reserved first addresses are in the other one."""
    return list(subnet.subnets(prefixlen_diff=1))[1]


def free_range(subnet_cidr: str, taken: Iterable[str], *, nodes: int) -> str | None:
    """The highest range of a subnet that holds `nodes` slots and that nobody has an address in; None: there is none.

    The range has room for four times as many slots if that is free, else for twice as many or for the nodes alone.
    `taken`: addresses and ranges of others.
    """
    subnet = IPv4Network(subnet_cidr)
    kept = [IPv4Network((int(subnet.network_address) + index, 32)) for index in range(KEPT_AT_START)]
    others = [*kept, IPv4Network((int(subnet.broadcast_address), 32)), *(IPv4Network(each) for each in taken)]
    for factor in ROOM_TO_GROW:
        prefix = 32 - (nodes * factor - 1).bit_length()
        if prefix <= subnet.prefixlen:
            continue
        for block in reversed(list(subnet.subnets(new_prefix=prefix))):
            if not any(block.overlaps(other) for other in others):
                return str(block)
    return None


def others_in_slots(slot_cidr: str, taken: Iterable[str], *, nodes: int) -> tuple[str, ...]:
    """The slots' addresses that are in `taken`: addresses and ranges of others."""
    others = [IPv4Network(each) for each in taken]
    slots = (slot_address(slot_cidr, slot) for slot in range(nodes))
    return tuple(each for each in slots if any(IPv4Address(each) in other for other in others))


def slot_address(slot_cidr: str, slot: int) -> str:
    """The private address of `slot`, whether the range is large enough or not."""
    return str(IPv4Address(int(IPv4Network(slot_cidr).network_address) + slot))


def slot_capacity(slot_cidr: str) -> int:
    """How many slots the range can hold; its last address is AWS's."""
    return IPv4Network(slot_cidr).num_addresses - RESERVED_AT_END


def prefix_for(nodes: int) -> int:
    """The prefix length of the smallest subnet whose upper half holds `nodes` slots."""
    needed = 2 * (nodes + RESERVED_AT_END)
    return min(SUBNET_PREFIXES[-1], 32 - (needed - 1).bit_length())


def _public_addresses(config: ClusterConfig, interfaces_per_node: int) -> PublicAddresses:
    """AWS gives automatic public addresses to machines with one interface only."""
    if config.access.mode == "private":
        return "none"
    return "automatic" if interfaces_per_node == 1 else "elastic"
