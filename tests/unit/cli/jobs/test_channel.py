"""Which messages a job's supervisors believe, and how long connections without a proof are kept."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from clusterctl.on_node.job.channel import LONGEST_GREETING, Channel, NotTrusted
from clusterctl.on_node.job.coordinator import SILENT_S, Unproven

KEY = b"the job's key"
WAIT_S = 30.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(WAIT_S)
        theirs.settimeout(WAIT_S)
        yield ours, theirs


def coordinator_of(connection: socket.socket, key: bytes, heard: list[object]) -> threading.Thread:
    """Notes in `heard` one line of the other side, or the type of the error, in a thread."""

    def hear() -> None:
        try:
            heard.append(Channel(connection, key, is_coordinator=True).hear())
        except (NotTrusted, EOFError) as e:
            heard.append(type(e))

    thread = threading.Thread(target=hear, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("key", "expected"), [(KEY, {"slot": 3}), (b"another key", NotTrusted)])
def test_a_line_is_believed_of_who_has_the_key(
    pair: tuple[socket.socket, socket.socket], key: bytes, expected: object
) -> None:
    heard: list[object] = []
    hearing = coordinator_of(pair[0], KEY, heard)
    Channel(pair[1], key, is_coordinator=False).send({"slot": 3})
    hearing.join(WAIT_S)
    assert heard == [expected]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"[" * 100 + b"]" * 100 + b"\n", NotTrusted),
        (b'"' + b"0" * LONGEST_GREETING + b'"\n', EOFError),
        (b"no JSON\n", NotTrusted),
        (b'"0"\n' + b"[" * 200_000 + b"]" * 200_000 + b"\n", NotTrusted),
        (b'"0"\n[["not", "a text"], "0"]\n', NotTrusted),
        (b'"0"\n', EOFError),
    ],
    ids=["a list as greeting", "a long greeting", "no JSON", "levels without end", "no text", "nothing more"],
)
def test_what_strangers_send_is_refused_and_ends_nothing_else(
    pair: tuple[socket.socket, socket.socket], sent: bytes, expected: object
) -> None:
    heard: list[object] = []
    hearing = coordinator_of(pair[0], KEY, heard)
    pair[1].sendall(sent)
    pair[1].shutdown(socket.SHUT_WR)
    hearing.join(WAIT_S)
    assert heard == [expected]


def test_who_proves_nothing_in_time_is_hung_up_on(pair: tuple[socket.socket, socket.socket]) -> None:
    unproven = Unproven(1)
    unproven.admit(pair[0])
    unproven.shut_late(time.monotonic())
    pair[1].sendall(b"x")
    assert pair[0].recv(1) == b"x"
    unproven.shut_late(time.monotonic() + SILENT_S + 1)
    assert pair[0].recv(1) == b""


def test_who_has_proved_itself_leaves_its_place_to_another(pair: tuple[socket.socket, socket.socket]) -> None:
    unproven = Unproven(1)
    unproven.admit(pair[0])
    unproven.dismiss(pair[0])
    unproven.dismiss(pair[0])
    unproven.admit(pair[1])  # waits for ever where the place is not free
    unproven.shut_late(time.monotonic() + SILENT_S + 1)
    pair[1].settimeout(0.0)
    assert pair[1].recv(1) == b""


def test_no_more_strangers_are_admitted_than_there_are_places(pair: tuple[socket.socket, socket.socket]) -> None:
    unproven = Unproven(1)
    unproven.admit(pair[0])
    admitted = threading.Event()

    def come() -> None:
        unproven.admit(pair[1])
        admitted.set()

    threading.Thread(target=come, daemon=True).start()
    assert not admitted.wait(0.05)
    unproven.dismiss(pair[0])
    assert admitted.wait(WAIT_S)
