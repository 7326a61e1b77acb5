"""Networks in `access.ssh_from` from which no login over the internet can come.

AWS takes them all, and a rehearsal reaches its nodes in another way: only a cluster on AWS is refused because of them.
"""

from __future__ import annotations

import ipaddress

from clusterctl_infra.config.network import AccessConfig
from clusterctl_infra.plan.case import error
from clusterctl_infra.plan.model import Problem

DOCUMENTATION = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
"""RFC 5737: for examples, and given to nobody."""
PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
"""RFC 1918 and RFC 6598: behind a router, which shows another address to the internet."""
HOW = "write your address as the internet sees it, with /32 (curl https://checkip.amazonaws.com prints it)"


def refused_on_aws(access: AccessConfig) -> tuple[Problem, ...]:
    """An error for each network that no login to a node on AWS can come from."""
    return tuple(
        error(f"access.ssh_from[{index}]", message)
        for index, cidr in enumerate(access.ssh_from)
        if (message := _refusal(cidr, is_public=access.mode == "public")) is not None
    )


def _refusal(cidr: str, *, is_public: bool) -> str | None:
    if _is_within(cidr, DOCUMENTATION):
        return f"{cidr}: an example's address (RFC 5737), which nobody has, so nobody would reach the nodes: {HOW}"
    if is_public and _is_within(cidr, PRIVATE):
        return (
            f"{cidr}: a private network, and public nodes are reached over the internet, where nobody has such an "
            f"address: {HOW}, or take access: {{mode: private}}"
        )
    return None


def _is_within(cidr: str, ranges: tuple[str, ...]) -> bool:
    network = ipaddress.IPv4Network(cidr)
    return any(network.subnet_of(ipaddress.IPv4Network(each)) for each in ranges)
