"""The barrier of a workflow's group, as its tasks start it: together or not at all, whoever else connects."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from clusterctl.on_node.workflow import barrier as program

from tests.integration.free_port import free_port
from tests.integration.rehearsed import wait_until


@pytest.fixture
def port() -> int:
    """Of the group alone: rank 0 listens on all of this computer's addresses."""
    return free_port([""])


def barrier(port: int, *words: str, key: str = "k") -> subprocess.Popen[str]:
    """The barrier's script, as a task starts it."""
    env = {"PATH": "/usr/bin:/bin", "CLUSTERCTL_GROUP_KEY": key, "CLUSTERCTL_GROUP_TASKS": "a,b,c"}
    argv = [sys.executable, str(Path(program.__file__)), "--num_nodes", "3", "--port", str(port), *words]
    return subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)


def ends(*started: subprocess.Popen[str]) -> list[tuple[str, int]]:
    return [(each.communicate(timeout=30)[1], each.returncode) for each in started]


def connected(port: int) -> socket.socket:
    """A connection to rank 0, once that listens."""
    found: list[socket.socket] = []

    def has_come() -> bool:
        try:
            found.append(socket.create_connection(("127.0.0.1", port), 10))
        except ConnectionRefusedError:
            return False
        return True

    wait_until(has_come, what="rank 0 listens", timeout_s=20)
    return found[0]


@contextmanager
def impostor(port: int, *answers: bytes) -> Iterator[None]:
    """Listens before rank 0 does; answers the first guests so, and is gone."""
    with socket.create_server(("127.0.0.1", port), reuse_port=False) as listener:
        yield
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'{"nonce": "0"}\n')
                connection.recv(4096)
                connection.sendall(answer + b"\n")


@pytest.mark.parametrize("place", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("leads_by", ["", "127.0.0.1", "::1", "localhost"])
def test_a_group_passes_the_barrier_together_whoever_comes_first(port: int, place: str, leads_by: str) -> None:
    """Rank 0 is given no address, or a name, which tells nothing of how its guests come: by IPv4 or by IPv6."""
    ways = {2: place, 0: leads_by, 1: place}
    assert ends(*(barrier(port, "--rank", str(rank), "--connect", way) for rank, way in ways.items())) == [("", 0)] * 3


def test_a_barrier_names_who_is_missing_and_takes_nobody_without_proof(port: int) -> None:
    lead = barrier(port, "--rank", "0", "--timeout", "8")
    guest = barrier(port, "--rank", "1", "--connect", "127.0.0.1")
    stranger = barrier(port, "--rank", "2", "--connect", "127.0.0.1", "--timeout", "5", key="other")
    missing = "barrier: not there within 8 s: c (rank 2)\n"
    place = f"rank 0 at 127.0.0.1:{port} did not release the group within 5 s"
    proof = f"barrier: {place}: it closed the connection: rank 0 has ended, or is another group's\n"
    assert ends(stranger, lead, guest) == [(proof, 1), (missing, 1), (missing, 1)]


@pytest.mark.parametrize(
    "words",
    [
        b"[" * 4000,
        b'{"rank": Infinity, "nonce": "", "of": 3, "proof": ""}',
        b'{"rank": 1, "nonce": "", "of": 1e999, "proof": "\xc3\xa9"}',
        b'{"rank": 1, "nonce": "", "of": 3, "proof": 5}',
        b"5",
        b"\xff\xfe",
    ],
)
def test_words_of_a_stranger_do_not_bring_rank_0_down(port: int, words: bytes) -> None:
    lead = barrier(port, "--rank", "0", "--timeout", "25")
    with connected(port) as stranger:
        stranger.sendall(words + b"\n")
        with stranger.makefile("rb") as received:
            received.readlines()  # to the end: rank 0 has heard it, and closed the connection
    guests = [barrier(port, "--rank", rank, "--connect", "127.0.0.1") for rank in ("1", "2")]
    assert ends(lead, *guests) == [("", 0)] * 3


def test_idle_connections_keep_nobody_of_the_group_out(port: int) -> None:
    lead = barrier(port, "--rank", "0", "--timeout", "25")
    with ExitStack() as held:
        for _ in range(60):
            held.enter_context(connected(port))
        guests = [barrier(port, "--rank", rank, "--connect", "127.0.0.1", "--timeout", "5") for rank in ("1", "2")]
        assert ends(lead, *guests) == [("", 0)] * 3


def test_whoever_listens_in_rank_0_s_place_ends_nobody_s_wait(port: int) -> None:
    answers = (
        json.dumps({"failed": "go home"}).encode(),
        json.dumps({"failed": "go home", "proof": "0"}).encode(),
        json.dumps({"go": "0"}).encode(),
        b"[" * 4000,
        b"5",
    )
    with impostor(port, *answers):
        guest = barrier(port, "--rank", "1", "--connect", "127.0.0.1", "--timeout", "25")
    other = barrier(port, "--rank", "2", "--connect", "127.0.0.1", "--timeout", "25")
    lead = barrier(port, "--rank", "0", "--timeout", "25")
    assert ends(lead, guest, other) == [("", 0)] * 3
