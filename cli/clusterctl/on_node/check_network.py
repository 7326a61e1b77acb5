"""Prints one JSON line: which nodes this one does not reach by TCP, and which names it resolves wrongly.

Python 3.9, standard library only; sent to the node as it stands. All nodes run it at the same time: each listens on
every port, and connects to every port of every other node, until all have done so or the time is over.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

GREETING = b"clusterctl-check\n"
MOST_BYTES = 65536
"""The most that is read from another node's port: any program may listen there, and send anything."""
ATTEMPT_S, RETRY_S, GREETING_S = 2.0, 0.05, 1.0
MOST_THREADS = 256
BACKLOG = 1024
OTHER = "other"
MOST_TEXT = 200


class Listener:
    """Listens on every port of this node that is free, and greets whoever connects."""

    def __init__(self, address: str, ports: list[int]) -> None:
        self.busy: list[int] = []
        self.trouble = ""
        self.visits: set[tuple[str, int]] = set()
        self._sockets: list[socket.socket] = []
        for port in ports:
            try:
                self._sockets.append(listening(address, port))
            except OSError as e:
                if e.errno == errno.EADDRINUSE:
                    self.busy.append(port)
                else:
                    self.trouble = "%s: %s" % (address, e.strerror)
        for each in self._sockets:
            threading.Thread(target=self._serve, args=(each,), daemon=True).start()

    def ports(self) -> list[int]:
        """The ports on which this node listens."""
        return [each.getsockname()[1] for each in self._sockets]

    def _serve(self, sock: socket.socket) -> None:
        port = sock.getsockname()[1]
        while True:
            try:
                visitor, (address, *_) = sock.accept()
            except OSError:
                time.sleep(RETRY_S)  # too many files may be open for a while
                continue
            with visitor, contextlib.suppress(OSError):  # a visitor may leave at once
                visitor.settimeout(GREETING_S)
                visitor.sendall(GREETING)
                self.visits.add((address, port))


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OSError."""
    sock = socket.socket(family_of(address), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def family_of(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def reach(own: str, address: str, port: int, until_s: float) -> str:
    """Why the port was not reached: empty where it was, OTHER where another program answers there."""
    while True:
        left_s = until_s - time.monotonic()
        try:
            with socket.create_connection((address, port), min(ATTEMPT_S, max(0.5, left_s)), (own, 0)) as sock:
                return "" if greeting(sock) == GREETING else OTHER
        except socket.timeout:
            why = "no answer"
        except OSError as e:
            why = (e.strerror or str(e)).lower()
        if time.monotonic() > until_s:
            return why
        time.sleep(RETRY_S)


def greeting(sock: socket.socket) -> bytes:
    """What the other side sends up to a newline, or until it stops or has sent too much."""
    received = b""
    until_s = time.monotonic() + GREETING_S
    try:
        while b"\n" not in received and len(received) < MOST_BYTES:
            sock.settimeout(max(0.01, until_s - time.monotonic()))
            chunk = sock.recv(4096)
            if not chunk:
                break
            received += chunk
    except OSError:
        pass  # it was reached, and sends nothing more
    return received


def wrong_names(nodes: list[Any], found: dict[str, str]) -> None:
    """Puts each name that resolves to another address than its node's into `found`, with those or an error."""
    for _, name, address in nodes:
        try:
            means = {str(row[4][0]) for row in socket.getaddrinfo(name, None, family_of(address))}
        except OSError as e:
            found[name] = e.strerror or str(e)
            continue
        if means != {address}:
            found[name] = ", ".join(sorted(means))


def check(slot: int, nodes: list[Any], ports: list[int], limit_s: float) -> dict[str, Any]:
    """What is wrong here, as JSON; `nodes` are slot, name and address of each node."""
    until_s = time.monotonic() + limit_s
    own = next(address for each, _, address in nodes if each == slot)
    names: dict[str, str] = {}
    resolving = threading.Thread(target=wrong_names, args=(nodes, names), daemon=True)
    resolving.start()
    listener = Listener(own, ports)
    others = [node for node in nodes if node[0] > slot] + [node for node in nodes if node[0] < slot]
    targets = [] if listener.trouble else [(node, port) for node in others for port in ports]
    with ThreadPoolExecutor(max(1, min(MOST_THREADS, len(targets)))) as pool:
        reasons = list(pool.map(lambda target: reach(own, target[0][2], target[1], until_s), targets))
    expected = {(address, port) for _, _, address in others for port in listener.ports()}
    while not expected <= listener.visits and time.monotonic() < until_s:
        time.sleep(RETRY_S)
    resolving.join(max(0.0, until_s - time.monotonic()))
    return {
        "slot": slot,
        "trouble": listener.trouble,
        "busy": [{"port": port} for port in listener.busy],
        "names": [{"name": name, "means": means[:MOST_TEXT]} for name, means in sorted(dict(names).items())],
        "are_names_known": not resolving.is_alive(),
        "unreached": [
            {"slot": node[0], "port": port, "why": why[:MOST_TEXT]}
            for (node, port), why in zip(targets, reasons)
            if why not in ("", OTHER)
        ],
    }


def own_slot() -> int:
    """This node's slot. Raises OSError, LookupError."""
    with open("/etc/clusterctl/env") as file:
        for line in file:
            name, _, value = line.strip().partition("=")
            if name == "CLUSTERCTL_SLOT":
                return int(value.strip("'\""))
    raise LookupError("no CLUSTERCTL_SLOT in /etc/clusterctl/env")


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    own = question["slot"] if "slot" in question else own_slot()
    print(json.dumps(check(own, question["nodes"], question["ports"], question["limit_s"])), flush=True)
    os._exit(0)
