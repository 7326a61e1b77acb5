"""The port of the dead man's beats, closed on every node to all but root.

A beat proves the cluster's secret, but thousands of any packets a second fill the buffer in which the beats wait, and
every node would end. So no node sends a user's packet to that port, nor one that it forwards, as it does for
containers; a packet that no socket made, such as a tunnel's, does not count as root's. What arrives has to come from a
slot's address, since what a container sends to its own node is not forwarded.
"""

from pathlib import Path
from typing import Callable, List, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.dead_man import PORT, allowed_s
from clusterctl_bootstrap.node.outside import Outside

AGAIN_S = 60.0
"""How often the rules are made again: a person's own firewall may remove all rules when it restarts."""
RULES = """\
table inet clusterctl_beats
delete table inet clusterctl_beats
table inet clusterctl_beats {
    chain output {
        type filter hook output priority 0
        udp dport %(port)d meta skuid 0 accept
        udp dport %(port)d drop
    }
    chain forward {
        type filter hook forward priority 0
        udp dport %(port)d drop
    }
    chain input {
        type filter hook input priority 0
        udp dport %(port)d ip saddr %(slots)s accept
        udp dport %(port)d drop
    }
}
"""


class BeatPort:
    """Closes the port while the dead man's rule holds, and again every minute."""

    def __init__(self, root: Path, outside: Outside, clock: Callable[[], float]) -> None:
        self.root = root
        self.outside = outside
        self.clock = clock
        self.due_s = clock()
        self.reason = ""

    def look(self) -> None:
        """Closes the port if it is time to. Raises FactsError, and OSError while the port is open to every user."""
        if not guard.applies(self.root) or not allowed_s(self.root):
            return
        if self.clock() >= self.due_s:
            self.due_s = self.clock() + AGAIN_S
            self.reason = close(self.outside, facts_file.present(self.root)["slot_cidr"])
        if self.reason:
            raise OSError(self.reason)


def close(outside: Outside, slots: str) -> str:
    """Closes the port. Returns why every user may still send to it; empty if only root may.

    `slots` are the addresses of the cluster.
    """
    code, output = outside.run(["nft", RULES % {"port": PORT, "slots": slots}])
    if code == 0:
        return ""
    reason = "port %d is open to every user of this node: nft: %s" % (PORT, output[-200:])
    for table, chain, match in older_rules(slots):
        rule = [chain, "-p", "udp", "--dport", str(PORT), *match, "-j", "DROP"]
        command = ["iptables", "-w", "5", "-t", table]
        if outside.run([*command, "-C", *rule])[0] != 0:
            code, output = outside.run([*command, "-I", *rule])
            if code != 0:
                return "%s; iptables: %s" % (reason, output[-200:])
    return ""


def older_rules(slots: str) -> List[Tuple[str, str, List[str]]]:
    """Table, chain and match of each rule for iptables, if there is no nft; beats are always IPv4.

    None is in the table filter's FORWARD, where Docker puts its rules that let containers out before all others.
    """
    return [
        ("filter", "OUTPUT", ["-m", "owner", "!", "--uid-owner", "0"]),
        ("mangle", "FORWARD", []),
        ("filter", "INPUT", ["!", "-s", slots]),
    ]
