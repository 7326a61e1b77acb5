"""What nodes run for `clusterctl check`, on addresses of the loopback interface."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any  # parsed JSON

import pytest
from clusterctl.on_node import check_network

from tests.integration.free_port import free_port

NODES = [(slot, address, address) for slot, address in enumerate(("127.83.0.1", "127.83.0.2", "127.83.0.3"))]
"""Their names are their addresses: what a name means is no matter here."""


@pytest.fixture
def port() -> int:
    """On which every node listens."""
    return free_port([address for _, _, address in NODES])


def check(port: int, slots: Sequence[int], *, limit_s: float) -> list[dict[str, Any]]:
    """What each of these nodes prints, all run at once."""
    children = []
    for slot in slots:
        question = json.dumps({"slot": slot, "nodes": NODES, "ports": [port], "limit_s": limit_s})
        argv = [sys.executable, "-I", check_network.__file__, question]
        children.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
    return [json.loads(child.communicate(timeout=60)[0]) for child in children]


@pytest.fixture
def other_program(port: int) -> Iterator[None]:
    """On slot 2 another program listens, and sends 200,000 bytes without a newline to whoever connects."""
    with socket.create_server((NODES[2][2], port), backlog=16) as server:

        def serve() -> None:
            while True:
                try:
                    visitor, _ = server.accept()
                except OSError:
                    return
                with visitor:
                    try:
                        visitor.sendall(b"x" * 200_000)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


def test_nodes_that_reach_each_other_have_nothing_to_tell(port: int) -> None:
    for slot, found in enumerate(check(port, (0, 1, 2), limit_s=30)):
        assert (found["slot"], found["unreached"], found["names"], found["busy"]) == (slot, [], [], [])


def test_a_pair_that_fails_is_named_with_its_port_and_why(port: int) -> None:
    (found,) = check(port, (0,), limit_s=0.2)
    assert found["unreached"] == [{"slot": slot, "port": port, "why": "connection refused"} for slot in (1, 2)]


@pytest.mark.usefixtures("other_program")
def test_another_program_on_the_port_breaks_nothing_and_is_told_by_its_node(port: int) -> None:
    first, second, third = check(port, (0, 1, 2), limit_s=30)
    assert first["unreached"] == second["unreached"] == third["unreached"] == []
    assert (first["busy"], third["busy"]) == ([], [{"port": port}])
