"""A connection to a node inside its cluster's network; as a script, ssh's ProxyCommand.

    python -I -S connect.py ROOT CLUSTER HOST PORT [SECONDS]

SECONDS is how long it keeps trying while nobody listens, so that one process can wait for a machine that boots.

Standard library only and in one file, so that it starts in a few milliseconds. Machines
booted by nspawn are reached through /run/netns/ccl-<cluster>; those of the process driver
through the namespaces of the cluster's holder, whose id is in ROOT/<cluster>/holder.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import time

CONNECT_TIMEOUT_S = 15.0
_RETRY_S = 0.1
NAMESPACE_FOLDER = "/run/netns"
HOLDER_FILE = "holder"  # holds its process id in digits
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_CHUNK_BYTES = 1 << 16


class NotReached(OSError):
    """The cluster's network or the node's port cannot be reached; the message says which."""


def open_connection(root: str, cluster: str, host: str, port: int, timeout_s: float) -> socket.socket:
    """A connected TCP socket inside the cluster's network. Raises NotReached.

    A child process makes it, because a namespace is entered for good: it hands the socket
    over and ends.
    """
    return _handed_over(["connect", root, cluster, host, str(port), str(timeout_s)], timeout_s)


def open_listener(root: str, cluster: str, address: str, port: int) -> socket.socket:
    """A listening TCP socket inside the cluster's network, also made by a child. Raises NotReached."""
    return _handed_over(["listen", root, cluster, address, str(port), "0"], CONNECT_TIMEOUT_S)


def enter(root: str, cluster: str) -> None:
    """Move this process into the cluster's network; NotReached if there is none."""
    try:
        # First: a network namespace (below) is named for the whole computer, and may be another user's.
        holder = _holder(root, cluster)
    except NotReached:
        path = f"{NAMESPACE_FOLDER}/ccl-{cluster}"
        if not os.path.exists(path):
            raise
        _join(path, _CLONE_NEWNET)
        return
    # Root enters the network alone: joining the user namespace would drop what root may do.
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


def connect_once_there(host: str, port: int, waits_s: float, caller: int) -> socket.socket:
    """A connection; tried for `waits_s` while nobody listens there, as long as the other end of `caller` is open."""
    hung_up = select.poll()
    hung_up.register(caller, 0)  # poll(2): a hang-up is always reported
    give_up = time.monotonic() + waits_s
    while True:
        try:
            return connect(host, port, CONNECT_TIMEOUT_S)
        except NotReached:
            if time.monotonic() >= give_up or hung_up.poll(_RETRY_S * 1000):
                raise


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
    """The exit code: 0 after a relayed connection, 1 if there was none or it broke off, 2 for wrong arguments."""
    if arguments[:1] == ["--hand-over"]:
        return _hand_over(arguments[1:])
    if len(arguments) not in (4, 5):
        sys.stderr.write("usage: connect.py ROOT CLUSTER HOST PORT [SECONDS]\n")
        return 2
    root, cluster, host, port, waits_s = (*arguments, "0")[:5]
    # ssh ends its ProxyCommand by a hang-up (sshconnect.c, ssh_kill_proxy_command), which is ignored below nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        enter(root, cluster)
        relay(connect_once_there(host, int(port), float(waits_s), caller=0), 0, 1)
    except NotReached as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except (ConnectionError, BrokenPipeError):  # either end closed the connection: ssh reports it
        return 1
    return 0


def _handed_over(request: list[str], timeout_s: float) -> socket.socket:
    ours, childs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        argv = [sys.executable, "-I", "-S", os.path.abspath(__file__), "--hand-over", *request]
        with childs:
            actions = [(os.POSIX_SPAWN_DUP2, childs.fileno(), 0)]
            child = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        ours.settimeout(timeout_s + 5)
        try:
            message, descriptors, _, _ = socket.recv_fds(ours, 1000, 1)
        except TimeoutError as error:
            raise NotReached(f"{request[3]}:{request[4]} did not answer in {timeout_s:g} s") from error
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            os.waitpid(child, 0)
    if not descriptors:
        raise NotReached(message.decode(errors="replace") or f"{request[3]}:{request[4]} was not reached")
    return socket.socket(fileno=descriptors[0])


def _hand_over(request: list[str]) -> int:
    purpose, root, cluster, host, port, timeout_s = request
    requester = socket.socket(fileno=0)
    try:
        enter(root, cluster)
        if purpose == "listen":
            made = socket.create_server((host, int(port)), backlog=128)
        else:
            made = connect(host, int(port), float(timeout_s))
            made.settimeout(None)
        socket.send_fds(requester, [b"."], [made.fileno()])
    except OSError as error:
        requester.send(str(error).encode())
        return 1
    return 0


def _holder(root: str, cluster: str) -> str:
    """The holder's process id. Its command line is checked, as the number may be another process's by now."""
    try:
        with open(os.path.join(root, cluster, HOLDER_FILE)) as file:
            process_id = str(int(file.read()))
        with open(f"/proc/{process_id}/cmdline") as file:
            argv = file.read().rstrip("\0").split("\0")
    except (OSError, ValueError) as error:
        raise NotReached(f"no machine of {cluster} has been booted on this computer") from error
    if len(argv) < 4 or argv[-1] != cluster or not argv[-3].endswith(".holder"):
        raise NotReached(f"the machines of {cluster} do not run on this computer any more")
    return process_id


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
