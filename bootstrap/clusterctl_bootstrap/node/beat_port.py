"""The port of the dead man's beats, closed on every node to all but root.

A beat proves the cluster's secret, but thousands a second of anything fill the buffer in which the beats wait, and
every node would end. So no user's packet leaves his node for that port, and nothing that is forwarded, which is how
containers send; a packet that no socket made, as tunnels make them, is not root's. What arrives has to come from a
slot's address: what a container sends to its own node is not forwarded.
"""

from pathlib import Path
from typing import Callable, List, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import guard
from clusterctl_bootstrap.node.dead_man import PORT, allowed_s
from clusterctl_bootstrap.node.outside import Outside

AGAIN_S = 60.0
"""Somebody's own firewall may take all rules away when it starts anew."""
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
        """Raises FactsError, and OSError while the port is open to every user."""
        if not guard.applies(self.root) or not allowed_s(self.root):
            return
        if self.clock() >= self.due_s:
            self.due_s = self.clock() + AGAIN_S
            self.reason = close(self.outside, facts_file.present(self.root)["slot_cidr"])
        if self.reason:
            raise OSError(self.reason)


def close(outside: Outside, slots: str) -> str:
    """Why every user may send to the port; nothing where only root may. `slots` are the addresses of the cluster."""
    code, said = outside.run(["nft", RULES % {"port": PORT, "slots": slots}])
    if code == 0:
        return ""
    reason = "port %d is open to every user of this node: nft: %s" % (PORT, said[-200:])
    for table, chain, match in older_rules(slots):
        rule = [chain, "-p", "udp", "--dport", str(PORT), *match, "-j", "DROP"]
        command = ["iptables", "-w", "5", "-t", table]
        if outside.run([*command, "-C", *rule])[0] != 0:
            code, said = outside.run([*command, "-I", *rule])
            if code != 0:
                return "%s; iptables: %s" % (reason, said[-200:])
    return ""


def older_rules(slots: str) -> List[Tuple[str, str, List[str]]]:
    """Table, chain and match of each rule for iptables, where nobody brought nft; beats are IPv4 alone.

    Not in the table filter's FORWARD: Docker puts what lets containers out before all else there.
    """
    return [
        ("filter", "OUTPUT", ["-m", "owner", "!", "--uid-owner", "0"]),
        ("mangle", "FORWARD", []),
        ("filter", "INPUT", ["!", "-s", slots]),
    ]
