"""Disturbed networks: the nft and tc commands that partition machines or slow their links. Pure."""

from __future__ import annotations

from clusterctl_rehearsal.machines.names import bridge_port

TABLE = "clusterctl"
_MINIMUM_BURST_BYTES = 32 * 1024
_BURST_S = 0.004  # one timer tick of a kernel at 250 Hz


def partition_rules(node_a: str, node_b: str) -> str:
    """An nft script that drops all frames between two machines' ports on the bridge.

    It adds to earlier partitions; a repeated one changes nothing.
    """
    port_a, port_b = bridge_port(node_a), bridge_port(node_b)
    return f"""\
add table bridge {TABLE}
add set bridge {TABLE} parted {{ type ifname . ifname; }}
add chain bridge {TABLE} parting {{ type filter hook forward priority 0; }}
flush chain bridge {TABLE} parting
add rule bridge {TABLE} parting iifname . oifname @parted drop
add element bridge {TABLE} parted {{ "{port_a}" . "{port_b}", "{port_b}" . "{port_a}" }}
"""


def healing_rules() -> str:
    """An nft script that ends all partitions, whether or not there is one."""
    return f"add table bridge {TABLE}\ndelete table bridge {TABLE}\n"


def rate_argv(interface: str, rate_mbit: int) -> tuple[str, ...]:
    """tc arguments that limit what leaves an interface; the kernel has no netem here."""
    burst_bytes = max(_MINIMUM_BURST_BYTES, int(rate_mbit * 1e6 / 8 * _BURST_S))
    limit = ("rate", f"{rate_mbit}mbit", "burst", f"{burst_bytes}b", "latency", "50ms")
    return ("qdisc", "replace", "dev", interface, "root", "tbf", *limit)


def full_rate_argv(interface: str) -> tuple[str, ...]:
    """tc arguments that end a limit."""
    return ("qdisc", "del", "dev", interface, "root")
