"""`clusterctl forward`: a port of a node on this computer, over a real sshd."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.waiting import has_ended

GREETING = b"a notebook"


@pytest.fixture
def notebook() -> Iterator[int]:
    """The port of a server that greets everybody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):  # shut down at the test's end
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(GREETING)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        # Closed alone, the thread would wait on in accept, and a signal would have it accept from whatever got the
        # descriptor's number next.
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


def greeted_at(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        return connection.recv(100)


def line_with(words: bytes, process: subprocess.Popen[bytes]) -> bytes:
    """The next line on stderr that has these words; the test's own limit ends a wait for none."""
    assert process.stderr is not None
    stderr = b""
    for line in process.stderr:
        stderr += line
        if words in line:
            return line
    raise AssertionError(f"it ended and had only printed: {stderr!r}")


def child_of(process: subprocess.Popen[bytes]) -> int:
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(child)


def test_a_port_is_there_comes_back_after_a_loss_and_ends_with_ctrl_c(
    loopback_cluster: LoopbackCluster, notebook: int, free_port: int
) -> None:
    argv = loopback_cluster.command("forward", f"{free_port}:{notebook}")
    announcement = f"127.0.0.1:{free_port} is port {notebook} of train-0; Ctrl-C ends it".encode()
    with subprocess.Popen(argv, stderr=subprocess.PIPE, env=loopback_cluster.environ) as process:
        try:
            line_with(announcement, process)
            assert greeted_at(free_port) == GREETING
            os.kill(child_of(process), signal.SIGKILL)
            assert b"trying again in" in line_with(b"the connection was lost", process)
            line_with(announcement, process)
            assert greeted_at(free_port) == GREETING
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
    with pytest.raises(ConnectionRefusedError):
        greeted_at(free_port)


def test_the_port_closes_also_when_the_command_is_killed(
    loopback_cluster: LoopbackCluster, notebook: int, free_port: int
) -> None:
    argv = loopback_cluster.command("forward", f"{free_port}:{notebook}")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, env=loopback_cluster.environ) as process:
        line_with(b"Ctrl-C ends it", process)
        ssh = child_of(process)
        process.kill()
        assert has_ended(ssh)


def test_a_port_in_use_is_named_with_another(loopback_cluster: LoopbackCluster, notebook: int) -> None:
    done = loopback_cluster.run("forward", str(notebook))
    assert done.returncode == 1
    assert f"port {notebook} is in use on this computer".encode() in done.stderr
    assert f"clusterctl forward {notebook + 1}:{notebook}".encode() in done.stderr


def test_a_node_that_is_not_there_is_not_waited_for(loopback_cluster: LoopbackCluster, free_port: int) -> None:
    loopback_cluster.stop(1)
    done = loopback_cluster.run("forward", "--node", "1", str(free_port))
    assert done.returncode == 255
    assert b"refuses connections" in done.stderr
