"""The failures of a way to a node that has come to nothing, through a proxy command or without one."""

from __future__ import annotations

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.target import Target


def no_way(target: Target, complaint: str) -> NodeFailure:
    """The failure of a connection whose proxy has ended; the proxy may name the place, too."""
    return NodeFailure("proxy", f"no way to {target.place}: {complaint.removeprefix(f'{target.place}: ')}")


def no_word(target: Target, waited: str) -> NodeFailure:
    """The failure of a connection on which nothing comes; through a proxy, nobody knows whether there is one."""
    is_direct = target.proxy_argv is None
    way = "takes connections but says nothing" if is_direct else "says nothing through the proxy command"
    return NodeFailure("timeout", f"{target.place} {way} (waited {waited})", phase="greeting")
