"""The way to a machine that boots: one process waits until somebody listens there, or nobody waits any more."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from clusterctl_rehearsal.machines import connect

WAITS_S = 20.0
GONE_S = 3.0
SCRIPT = (
    "import sys; from clusterctl_rehearsal.machines.connect import connect_once_there as way; "
    "way('127.0.0.1', int(sys.argv[1]), float(sys.argv[2]), caller=0).sendall(b'there')"
)


@pytest.fixture
def port() -> int:
    """One on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def start(port: int, waits_s: float, caller: socket.socket) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", SCRIPT, str(port), str(waits_s)]
    return subprocess.Popen(argv, stdin=caller.fileno(), stderr=subprocess.PIPE)


def test_who_begins_to_listen_later_is_reached(port: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, start(port, WAITS_S, theirs) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=0.5)
        with socket.create_server(("127.0.0.1", port)) as server:
            server.settimeout(WAITS_S)
            reached, _ = server.accept()
            with reached:
                assert reached.recv(100) == b"there"
        assert waiting.wait(timeout=WAITS_S) == 0


def test_nobody_is_waited_for_once_the_caller_is_gone(port: int) -> None:
    ours, theirs = socket.socketpair()
    with start(port, WAITS_S, theirs) as waiting:
        theirs.close()
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=0.5)
        ours.close()
        assert waiting.wait(timeout=GONE_S) == 1


def test_without_a_time_nothing_is_tried_again(port: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(connect.NotReached, match=f"127.0.0.1:{port}: Connection refused"):
        connect.connect_once_there("127.0.0.1", port, 0, caller=theirs.fileno())
