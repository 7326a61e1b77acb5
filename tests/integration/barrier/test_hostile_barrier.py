"""What users without the secret do to a start barrier: idle crowds at its port, lies, escape sequences in messages."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.barrier import BEATS, LATE, REFUSED, Wait
from clusterctl_bootstrap.node.barrier_door import MOST_UNPROVEN, Door
from clusterctl_bootstrap.node.barrier_lines import Lines

from tests.integration.barrier.test_start_barrier import until
from tests.integration.barrier.waiting import SECRET, Hall, Threads, a_hall

CROWD = 3 * MOST_UNPROVEN
_NUMBERS = itertools.count(1)


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    """Two nodes."""
    address = f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}.{100 + next(_NUMBERS)}"
    with a_hall(tmp_path, address, 2) as made:
        yield made


def connected(wait: Wait) -> socket.socket:
    """A stranger at the host's port, once it is open."""
    made: list[socket.socket] = []

    def is_in() -> bool:
        try:
            made.append(socket.create_connection(wait.place, timeout=20))
        except ConnectionRefusedError:
            return False
        return True

    until(is_in, "the port is open")
    return made[0]


def test_an_idle_crowd_is_sent_away_and_does_not_keep_the_guest_out(hall: Hall) -> None:
    threads = Threads()
    host = threads.start(hall.wait(0))
    crowd = [connected(host) for _ in range(CROWD)]
    try:
        until(lambda: len(host.door.unproven) <= MOST_UNPROVEN + 2, "few of the crowd are left")
        threads.start(hall.wait(1))
        assert threads.joined() == ["met"] * 2
    finally:
        for stranger in crowd:
            stranger.close()


def stays(connection: socket.socket) -> None:
    """Proves nothing, until it is sent away."""
    while connection.recv(4096):
        pass


def test_of_a_crowd_the_oldest_of_the_fullest_address_goes(hall: Hall) -> None:
    with Door((hall.address, 0), 0, stays) as door, contextlib.ExitStack() as strangers:

        def comes(address: str) -> socket.socket:
            made = socket.create_connection(door.listening.getsockname(), 20, source_address=(address, 0))
            return strangers.enter_context(made)

        comes("127.0.0.9")
        crowd = [comes("127.0.0.8") for _ in range(MOST_UNPROVEN)]
        for _ in range(MOST_UNPROVEN + 1):
            door.look()
        assert len(door.unproven) == MOST_UNPROVEN
        assert "127.0.0.9" in [address for address, _ in door.unproven.values()]
        assert crowd[0].recv(1) == b"", "the first of the crowd was sent away"


@pytest.mark.parametrize("sent", [b"", b"[", b"x" * 100_000], ids=["nothing", "a bracket", "much"])
def test_who_proves_nothing_is_sent_away_soon(hall: Hall, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(Door((hall.address, 0), 0, stays, prove_s=0.3))
        stranger = stack.enter_context(socket.create_connection(door.listening.getsockname(), 20))
        stranger.sendall(sent)

        def is_gone() -> bool:
            door.look()
            return not door.unproven

        door.look()
        until(is_gone, "it is sent away")
        with contextlib.suppress(ConnectionResetError):  # the door had not read all that was sent
            assert stranger.recv(1) == b""


def test_where_no_more_files_can_be_opened_the_host_pauses_and_goes_on(hall: Hall) -> None:
    """The limit is this process's own, so the crowd waits before the door."""
    with Door((hall.address, 0), 2, lambda connection: None) as door:
        strangers = [socket.create_connection(door.listening.getsockname(), timeout=20) for _ in range(2)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
        try:
            began, busy = time.monotonic(), time.thread_time()
            for _ in range(5):
                door.look()
            assert time.monotonic() - began >= 0.4, "it does not spin"
            # Processor time, which other workers do not make longer: a host that spins would use all of these 0.4 s.
            assert time.thread_time() - busy < 0.2
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        door.look()
        for stranger in strangers:
            stranger.close()


LIES = {
    "a refusal": {"refused": "you are \x1b[2Jowned"},
    "go": {"go": True},
    "who is missing": {"missing": [1], "why": {}},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
@pytest.mark.parametrize("form", ["bare", "with a proof of another secret"])
def test_a_listener_without_the_secret_is_not_believed(hall: Hall, lie: dict[str, object], form: str) -> None:
    answer = lie if form == "bare" else [lie, "0" * 64]
    unknown = "what answers there does not know the secret that this node knows"
    assert after(hall, answer) == f"{LATE}: not met in time, missing: train-0 ({unknown})"


ODD = {
    "a number for who is missing": {"missing": 5, "why": {}},
    "texts for slots": {"missing": ["\x1b[2J"], "why": {}},
    "no reasons": {"missing": [1], "why": 7},
    "no word that is known": {"come": True},
    "a text for go": {"go": "yes"},
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_what_slot_0_would_never_say_is_told_and_is_no_traceback(hall: Hall, answer: dict[str, object]) -> None:
    assert after(hall, answer, with_secret=True).startswith(f"{LATE}: not met in time, missing: train-0 (")


def test_no_escape_of_slot_0_reaches_the_terminal(hall: Hall) -> None:
    outcome = after(hall, {"refused": "\x1b]0;owned\x07"}, with_secret=True)
    assert outcome == f"{REFUSED}: slot 0 refused this node: ?]0;owned?"


def after(hall: Hall, answer: object, *, with_secret: bool = False) -> str:
    """What becomes of slot 1 when something that listens in slot 0's place gives this answer, as often as it comes."""
    wait, threads = hall.wait(1, timeout_s=0.4), Threads()
    with socket.create_server(wait.place) as listening:
        listening.settimeout(0.1)
        threads.start(wait)
        while not threads.outcomes:
            with contextlib.suppress(OSError, EOFError), listening.accept()[0] as connection:
                lines = Lines(connection)
                lines.tell("challenge", 5)
                words, _ = lines.hear(5)
                proof = Wait(hall.facts(0), SECRET, "start", 1)._proof(answer, words)
                lines.tell([answer, proof] if with_secret else answer, 5)
    (outcome,) = threads.joined()
    return outcome


def test_whoever_has_the_port_before_slot_0_keeps_the_barrier_shut_and_slot_0_says_so(hall: Hall) -> None:
    wait, threads = hall.wait(0, timeout_s=0.4), Threads()
    with socket.create_server(wait.place):
        threads.start(wait)
        (outcome,) = threads.joined()
    assert outcome.startswith(f"{REFUSED}: slot 0 waits here already, or another program has port {wait.place[1]}")


def test_a_listener_that_drips_does_not_hold_a_guest_beyond_its_time(hall: Hall) -> None:
    wait = hall.wait(1, timeout_s=1)
    wait.beat_s = 1 / BEATS
    with socket.create_server(wait.place) as listening:
        threads = Threads()
        threads.start(wait)
        connection, _ = listening.accept()
        with connection:
            began = time.monotonic()
            while time.monotonic() - began < 10 and threads.outcomes == {}:
                try:
                    connection.sendall(b" ")
                except OSError:
                    break
                time.sleep(0.05)
    (outcome,) = threads.joined()
    assert outcome.startswith(f"{LATE}: ")
