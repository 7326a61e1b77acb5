"""Logged-in connections that nobody uses now, kept for the next command."""

from __future__ import annotations

import select
import socket
import threading
import time
from dataclasses import dataclass

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.fanout.link import Link
from clusterctl.ssh.target import Target

# A machine that has gone is noticed by the kernel within half a minute (tcp(7)): its socket is then readable.
IDLE_S, INTERVAL_S, TRIES = 15, 5, 3


@dataclass(frozen=True, kw_only=True)
class LinkKey:
    """Which machine a connection leads to: a replaced node keeps its address and its key, but not its instance."""

    cluster_id: str
    instance_id: str | None
    generation: int
    target: Target


def link_key(inventory: Inventory, node: InventoryNode, target: Target) -> LinkKey:
    """The key of a connection to `node` as the inventory knows it now."""
    return LinkKey(
        cluster_id=inventory.cluster_id,
        instance_id=node.instance_id,
        generation=inventory.generation,
        target=target,
    )


class LinkPool:
    """Idle connections by key; safe to use from several threads."""

    def __init__(self) -> None:
        self._links: dict[LinkKey, Link] = {}
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._links)

    def has(self, key: LinkKey) -> bool:
        """Whether there is a connection, as far as is known without asking."""
        with self._changing:
            return key in self._links

    def take(self, key: LinkKey) -> Link | None:
        """A connection on which nothing has come since it was kept; None when there is none."""
        with self._changing:
            link = self._links.pop(key, None)
        if link is None or link.is_quiet():
            return link
        link.close()
        return None

    def put(self, key: LinkKey, link: Link) -> None:
        """Keeps the connection; a kept one to the same node, or to the machine before it at that place, is closed."""
        _set_keepalive(link)
        with self._changing:
            old = [
                other for other in self._links if other.target.name == key.target.name and _is_same_place(other, key)
            ]
            closed = [self._links.pop(other) for other in old]
            self._links[key] = link
        for other in closed:
            other.close()

    def drop_dead(self, wait_s: float) -> None:
        """Closes connections that have ended, or on which anything comes within `wait_s`."""
        with self._changing:
            by_descriptor = {link.socket.fileno(): key for key, link in self._links.items()}
        poll = select.poll()
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        if not by_descriptor:
            time.sleep(wait_s)
            return
        for descriptor, _ in poll.poll(wait_s * 1000):
            self._drop_if_dead(by_descriptor[descriptor])

    def _drop_if_dead(self, key: LinkKey) -> None:
        with self._changing:
            # Taken meanwhile, it is not here; taken and put back, it is quiet again.
            link = self._links.get(key)
            if link is None or link.is_quiet():
                return
            del self._links[key]
        link.close()

    def descriptors(self) -> set[int]:
        """The file descriptors that must stay open for these connections to live."""
        with self._changing:
            return {number for link in self._links.values() for number in link.descriptors()}

    def close(self) -> None:
        """Ends all connections."""
        with self._changing:
            links, self._links = list(self._links.values()), {}
        for link in links:
            link.close()


def _is_same_place(key: LinkKey, other: LinkKey) -> bool:
    return (key.cluster_id, key.target.host, key.target.port, key.target.user) == (
        other.cluster_id,
        other.target.host,
        other.target.port,
        other.target.user,
    )


def _set_keepalive(link: Link) -> None:
    if link.socket.family not in {socket.AF_INET, socket.AF_INET6}:
        return  # a proxy's socket: it ends with the proxy
    for option, value in (
        (socket.TCP_KEEPIDLE, IDLE_S),
        (socket.TCP_KEEPINTVL, INTERVAL_S),
        (socket.TCP_KEEPCNT, TRIES),
    ):
        link.socket.setsockopt(socket.IPPROTO_TCP, option, value)
