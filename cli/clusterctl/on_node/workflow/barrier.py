"""A barrier between the tasks of a group: rank 0 waits until all are there, then lets all of them go.

    python3 osmo_barrier.py --num_nodes 4 --rank 2 --connect HOST [--port 12344] [--timeout 1800]

Rank 0 listens. The exit code is 0 once all are there, and 1 with the names of those that are missing when the time is
over. In a workflow the tasks of a group prove by a key of the group's own that they belong to it.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import secrets
import select
import socket
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Set

PORT = 12344
TIMEOUT_S = 1800.0
KEY_VARIABLE = "CLUSTERCTL_GROUP_KEY"
TASKS_VARIABLE = "CLUSTERCTL_GROUP_TASKS"
RETRY_S = 0.5
SAY_WITHIN_S = 10.0
LINE_BYTES = 4096
MOST_SHOWN = 20
MOST_WHY_CHARACTERS = 300
MALFORMED = (ValueError, LookupError, TypeError, OverflowError, RecursionError)
"""What reading a message may raise if a stranger sent it: everybody can connect."""


class Failed(Exception):
    """Why the barrier was not passed."""


def wait(num_nodes: int, rank: int, connect: str, port: int, timeout_s: float, key: str, names: Sequence[str]) -> None:
    """Waits until all ranks are there. Raises Failed. `names`: the names of the ranks' tasks; empty if unknown."""
    if rank == 0:
        _lead(num_nodes, port, timeout_s, key, names)
    else:
        _join(num_nodes, rank, connect, port, timeout_s, key)


class _Guest:
    """A connection to rank 0."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = b""
        self.nonce = secrets.token_hex(16)
        self.its_nonce = ""
        self.since_s = time.monotonic()
        self.rank: Optional[int] = None


def _lead(num_nodes: int, port: int, timeout_s: float, key: str, names: Sequence[str]) -> None:
    until_s = time.monotonic() + timeout_s
    guests: List[_Guest] = []
    present: Dict[int, _Guest] = {}
    with _listener(port) as listener:
        listener.setblocking(False)
        while len(present) < num_nodes - 1:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                why = "not there within %g s: %s" % (timeout_s, missing(num_nodes, present, names))
                for guest in present.values():
                    _refuse(guest, why, key)
                raise Failed(why)
            ready = _ready([listener, *(guest.connection for guest in guests)], min(left_s, 1.0))
            if listener.fileno() in ready:
                _accept(listener, guests, most=2 * num_nodes + 16)
            for guest in list(guests):
                if not _hear(guest, guest.connection.fileno() in ready, num_nodes, key, present):
                    guest.connection.close()
                    guests.remove(guest)
                    if guest.rank is not None and present.get(guest.rank) is guest:
                        del present[guest.rank]
        for guest in present.values():
            _send(guest, {"go": _proof(key, "go", guest.its_nonce, guest.nonce)})
        for guest in guests:
            guest.connection.close()


def _listener(port: int) -> socket.socket:
    """A socket that listens for IPv4, and for IPv6 where the node has it. Raises Failed.

    The other ranks know only rank 0's name, and may connect by either.
    """
    has_both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if has_both else socket.AF_INET
    try:
        return socket.create_server(("", port), family=family, backlog=128, dualstack_ipv6=has_both)
    except OSError as e:
        raise Failed("port %d: %s" % (port, os.strerror(e.errno or 0))) from e


def missing(num_nodes: int, present: Dict[int, Any], names: Sequence[str]) -> str:
    """The ranks from 1 on that are not there: `worker_2 (rank 2)`, or `rank 2` if the names are unknown."""
    ranks = [rank for rank in range(1, num_nodes) if rank not in present]
    known = len(names) == num_nodes
    shown = ["%s (rank %d)" % (names[rank], rank) if known else "rank %d" % rank for rank in ranks[:MOST_SHOWN]]
    return ", ".join(shown) + (" and %d more" % (len(ranks) - MOST_SHOWN) if len(ranks) > MOST_SHOWN else "")


def _ready(connections: Sequence[socket.socket], within_s: float) -> Set[int]:
    """The descriptors with something to read; by poll, since select knows no number above 1023."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN)
    return {number for number, _ in poll.poll(within_s * 1000)}


def _accept(listener: socket.socket, guests: List[_Guest], most: int) -> None:
    try:
        connection, _ = listener.accept()
    except OSError:
        return
    if len(guests) >= most:
        # The one that has said nothing for the longest: a task of the group proves itself at once.
        silent = min((guest for guest in guests if guest.rank is None), key=lambda guest: guest.since_s, default=None)
        (connection if silent is None else silent.connection).close()
        if silent is None:
            return
        guests.remove(silent)
    connection.setblocking(False)
    guest = _Guest(connection)
    guests.append(guest)
    _send(guest, {"nonce": guest.nonce})


def _hear(guest: _Guest, is_ready: bool, num_nodes: int, key: str, present: Dict[int, _Guest]) -> bool:
    """Reads what a guest has sent, and enters its rank in `present` once it has proved that it belongs to the group.

    Returns whether to keep the connection.
    """
    if not is_ready:
        return guest.rank is not None or time.monotonic() - guest.since_s < SAY_WITHIN_S
    try:
        chunk = guest.connection.recv(LINE_BYTES)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if not chunk:
        return False
    guest.received += chunk
    if guest.rank is not None or b"\n" not in guest.received:
        return len(guest.received) <= LINE_BYTES
    try:
        words = json.loads(guest.received.partition(b"\n")[0])
        rank, its_nonce, of = int(words["rank"]), str(words["nonce"]), int(words["of"])
        is_proven = hmac.compare_digest(str(words["proof"]), _proof(key, "join %d" % rank, guest.nonce, its_nonce))
    except MALFORMED:
        return False
    if not is_proven:
        return False  # nothing is signed for a stranger, who could pass it on to somebody who waits
    guest.its_nonce = its_nonce
    if of != num_nodes or not 0 < rank < num_nodes:
        _refuse(guest, "rank %d of %d, and rank 0 waits for ranks 1 to %d" % (rank, of, num_nodes - 1), key)
        return False
    guest.rank = rank
    present[rank] = guest
    return True


def _join(num_nodes: int, rank: int, connect: str, port: int, timeout_s: float, key: str) -> None:
    until_s = time.monotonic() + timeout_s
    why = "nobody answers"
    while True:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise Failed("rank 0 at %s:%d did not release the group within %g s: %s" % (connect, port, timeout_s, why))
        try:
            with socket.create_connection((connect, port), timeout=min(left_s, SAY_WITHIN_S)) as connection:
                connection.settimeout(left_s)
                _ask(connection, num_nodes, rank, key)
                return
        except (OSError, *MALFORMED) as e:
            why = ascii(str(e))[1:-1][:MOST_WHY_CHARACTERS]  # as anybody may answer there: nothing moves a cursor
        time.sleep(min(RETRY_S, max(0.0, until_s - time.monotonic())))


def _ask(connection: socket.socket, num_nodes: int, rank: int, key: str) -> None:
    """Says to rank 0 that this rank is there, and waits until rank 0 lets it go.

    Raises Failed if rank 0 refuses and proves that it is rank 0, else OSError or one of MALFORMED.
    """
    with connection.makefile("rb") as stream:
        its_nonce, nonce = str(json.loads(stream.readline(LINE_BYTES))["nonce"]), secrets.token_hex(16)
        proof = _proof(key, "join %d" % rank, its_nonce, nonce)
        words = {"rank": rank, "of": num_nodes, "nonce": nonce, "proof": proof}
        connection.sendall(json.dumps(words).encode() + b"\n")
        line = stream.readline(LINE_BYTES)
    if not line:
        raise ConnectionResetError("it closed the connection: rank 0 has ended, or is another group's")
    answer = json.loads(line)
    why = str(answer["failed"]) if "failed" in answer else ""
    proof = _proof(key, "failed " + why if why else "go", nonce, its_nonce)
    if not hmac.compare_digest(str(answer["proof" if why else "go"]), proof):
        raise ValueError("what answers there does not prove that it belongs to this group")
    if why:
        raise Failed(why)


def _proof(key: str, *words: str) -> str:
    return hmac.new(key.encode(), "\n".join(words).encode(), hashlib.sha256).hexdigest()


def _refuse(guest: _Guest, why: str, key: str) -> None:
    """Tells a guest why the barrier failed, with a proof: else any program at rank 0's address could end its wait."""
    proof = _proof(key, "failed " + why, guest.its_nonce, guest.nonce)
    _send(guest, {"failed": why, "proof": proof})


def _send(guest: _Guest, words: Dict[str, str]) -> None:
    try:
        guest.connection.sendall(json.dumps(words).encode() + b"\n")
    except OSError:
        pass  # it has gone, as the next read from it will show


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Waits at the barrier that the arguments describe; returns the exit code."""
    parser = argparse.ArgumentParser(description="Wait until all tasks of a group are there.")
    parser.add_argument("--num_nodes", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--connect", default="", help="where rank 0 is; rank 0 itself may be given it, too")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds")
    read = parser.parse_args(arguments)
    if not 0 <= read.rank < read.num_nodes:
        parser.error("--rank is 0 to %d" % (read.num_nodes - 1))
    if read.rank and not read.connect:
        parser.error("--connect says where rank 0 is")
    key = os.environ.get(KEY_VARIABLE, "")
    if not key:
        print("barrier: %s is not set, so nobody proves who they are" % KEY_VARIABLE, file=sys.stderr)
    names = os.environ.get(TASKS_VARIABLE, "").split(",")
    try:
        wait(read.num_nodes, read.rank, read.connect, read.port, read.timeout, key, names)
    except Failed as e:
        print("barrier: %s" % e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
