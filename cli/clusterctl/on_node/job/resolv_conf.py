"""What a resolv.conf says, and a task's own, which names the task's name server alone (resolv.conf(5))."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

RESOLV_CONF = "etc/resolv.conf"
MOST_ASKED = 3
"""Name servers of a resolv.conf that are asked (MAXNS)."""
MARK = "# clusterctl: nodes' names are answered here, all others by the node's own resolvers"


class Resolvers(NamedTuple):
    """What a resolv.conf says."""

    servers: Tuple[str, ...]
    domains: Tuple[str, ...]
    """The domains that a resolver tries behind a short name."""


def read_resolvers(text: str) -> Resolvers:
    """The file's name servers and domains; the last line with domains counts (resolv.conf(5))."""
    rows = [line.split() for line in text.splitlines() if line.split() and line[0] not in "#;"]
    servers = [row[1] for row in rows if row[0] == "nameserver" and len(row) > 1]
    domains: List[str] = []
    for row in rows:
        if row[0] in ("search", "domain"):
            domains = [word.lower().strip(".") for word in row[1:]]
    return Resolvers(tuple(servers[:MOST_ASKED]), tuple(domain for domain in domains if domain))


def own_resolv_conf(text: str, address: str) -> str:
    """The node's resolv.conf with this server in the place of its servers.

    It is the only one: some resolvers ask all servers at once, and believe the first that knows no such name.
    """
    kept = [line for line in text.splitlines() if line.strip() and line.split()[0] != "nameserver"]
    return "".join(line + "\n" for line in [MARK, "nameserver " + address, *kept])
