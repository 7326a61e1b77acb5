"""A connection to a node inside its cluster's network; as a script, ssh's ProxyCommand.

    python -I -S connect.py ROOT CLUSTER HOST PORT

Standard library only and of one piece, so that it starts in a few milliseconds. Machines
booted by nspawn are reached through /run/netns/ccl-<cluster>; those of the process driver
through the namespaces of the cluster's holder, whose id is in ROOT/<cluster>/holder.json.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import sys

CONNECT_TIMEOUT_S = 15.0
NAMESPACE_FOLDER = "/run/netns"
HOLDER_FILE = "holder.json"
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_CHUNK_BYTES = 1 << 16


class NotReached(OSError):
    """The cluster's network or the node's port is not there; says which."""


def open_connection(root: str, cluster: str, host: str, port: int, timeout_s: float) -> socket.socket:
    """A connected TCP socket, made by a child process inside the cluster's network.

    A child, because a namespace is entered for good: it hands the socket over and ends.
    Raises NotReached.
    """
    ours, childs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        argv = [sys.executable, "-I", "-S", os.path.abspath(__file__), root, cluster, host, str(port)]
        with childs:
            handed = childs.fileno()
            child = os.posix_spawn(
                argv[0],
                [*argv, str(timeout_s), str(_HANDED_OVER)],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, handed, _HANDED_OVER)],
            )
        ours.settimeout(timeout_s + 5)
        try:
            message, descriptors, _, _ = socket.recv_fds(ours, 1000, 1)
        except TimeoutError as error:
            raise NotReached(f"{host}:{port} did not answer in {timeout_s:g} s") from error
        finally:
            os.waitpid(child, 0)
    if not descriptors:
        raise NotReached(message.decode(errors="replace") or f"{host}:{port} was not reached")
    return socket.socket(fileno=descriptors[0])


_HANDED_OVER = 9  # the descriptor on which the child hands the socket over


def enter(root: str, cluster: str) -> None:
    """Move this process into the cluster's network; NotReached if there is none."""
    path = f"{NAMESPACE_FOLDER}/ccl-{cluster}"
    if os.path.exists(path):
        _join(path, _CLONE_NEWNET)
        return
    holder = _holder(root, cluster)
    # Root enters the network alone: joining the user namespace would drop what it may do here.
    if os.geteuid() != 0:
        _join(f"/proc/{holder}/ns/user", _CLONE_NEWUSER)
    _join(f"/proc/{holder}/ns/net", _CLONE_NEWNET)


def connect(host: str, port: int, timeout_s: float) -> socket.socket:
    """A connected socket in the present network; NotReached in one sentence."""
    try:
        return socket.create_connection((host, port), timeout_s)
    except TimeoutError as error:
        raise NotReached(f"{host}:{port} did not answer in {timeout_s:g} s") from error
    except OSError as error:
        raise NotReached(f"{host}:{port}: {error.strerror or error}") from error


def relay(connection: socket.socket, source: int, target: int) -> None:
    """Copy both ways until the other side is done; the end of `source` closes our half only."""
    connection.setblocking(False)
    remote = connection.fileno()
    outgoing = b""
    source_open = True
    while True:
        reading = [remote, *([source] if source_open and not outgoing else [])]
        ready, writable, _ = select.select(reading, [remote] if outgoing else [], [])
        if writable:
            outgoing = outgoing[connection.send(outgoing) :]
        if source in ready:
            outgoing = os.read(source, _CHUNK_BYTES)
            if not outgoing:
                source_open = False
                connection.shutdown(socket.SHUT_WR)
        if remote in ready:
            incoming = connection.recv(_CHUNK_BYTES)
            if not incoming:
                return
            _write_all(target, incoming)


def main(arguments: list[str]) -> int:
    """Exit code: 0 after a relayed connection, 1 with one sentence on standard error."""
    if len(arguments) not in (4, 6):
        sys.stderr.write("usage: connect.py ROOT CLUSTER HOST PORT\n")
        return 2
    root, cluster, host, port = arguments[:4]
    timeout_s = float(arguments[4]) if len(arguments) == 6 else CONNECT_TIMEOUT_S
    requester = socket.socket(fileno=int(arguments[5])) if len(arguments) == 6 else None
    try:
        enter(root, cluster)
        connection = connect(host, int(port), timeout_s)
        if requester is not None:
            connection.settimeout(None)
            socket.send_fds(requester, [b"."], [connection.fileno()])
        else:
            relay(connection, 0, 1)
    except NotReached as error:
        if requester is not None:
            requester.send(str(error).encode())
        else:
            sys.stderr.write(f"{error}\n")
        return 1
    except (ConnectionError, BrokenPipeError):  # either end went away in the middle: ssh says so
        return 1
    return 0


def _holder(root: str, cluster: str) -> int:
    path = os.path.join(root, cluster, HOLDER_FILE)
    try:
        with open(path) as file:
            fields = dict(pair.strip(' "{}\n').split('": ', 1) for pair in file.read().split(","))
        holder = int(fields["process_id"])
    except (OSError, ValueError, KeyError) as error:
        raise NotReached(f"cluster {cluster} has no network on this computer") from error
    return holder


def _join(path: str, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NotReached(f"{path}: {error.strerror}") from error
    if libc.setns(descriptor, kind) != 0:
        raise NotReached(f"{path}: {os.strerror(ctypes.get_errno())} (this needs the user who made it)")
    os.close(descriptor)


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
