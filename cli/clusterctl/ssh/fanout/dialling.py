"""Connections begun before the code that waits for them is loaded: nodes get ready meanwhile."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterable

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.target import Target, target_of

SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Address = tuple[socket.AddressFamily, SocketAddress]

_BEGUN = {0, errno.EINPROGRESS}


class Dialled:
    """Sockets that do not block, connected or connecting, by host and port."""

    def __init__(self) -> None:
        self._sockets: dict[tuple[str, int], socket.socket] = {}

    def begin(self, target: Target) -> None:
        """Begins to connect to a plain address; names, proxies and failures are left to the node's turn."""
        if target.proxy_argv is not None or (target.host, target.port) in self._sockets:
            return
        with contextlib.suppress(OSError):
            family, address = looked_up(target, socket.AI_NUMERICHOST)[0]
            connection, code = begun(family, address)
            if code in _BEGUN:
                self._sockets[target.host, target.port] = connection
            else:
                connection.close()

    def take(self, target: Target) -> socket.socket | None:
        """The socket to the target; the next to ask for it gets none."""
        return self._sockets.pop((target.host, target.port), None)

    def close(self) -> None:
        """Closes what nobody has taken."""
        while self._sockets:
            self._sockets.popitem()[1].close()


def dialled(inventory: Inventory, nodes: Iterable[InventoryNode]) -> Dialled:
    """Connections to these nodes under way; a node that cannot be dialled says why when its turn comes."""
    under_way = Dialled()
    for node in nodes:
        with contextlib.suppress(NodeFailure):
            under_way.begin(target_of(inventory, node))
    return under_way


def begun(family: socket.AddressFamily, address: SocketAddress) -> tuple[socket.socket, int]:
    """A socket that does not block, and the result of connecting it: 0, EINPROGRESS, or an error's number."""
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        return connection, connection.connect_ex(address)
    except BaseException:
        connection.close()
        raise


def looked_up(target: Target, flags: int) -> list[Address]:
    """The target's addresses, in the system's order. Raises OSError."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]
