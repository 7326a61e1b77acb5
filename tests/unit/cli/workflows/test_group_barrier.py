"""Who is taken for a task of the group at its barrier, over a pair of sockets: no stranger joins, and none ends it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any  # JSON

import pytest
from clusterctl.on_node.workflow import barrier
from clusterctl.on_node.workflow.barrier import LINE_BYTES, SAY_WITHIN_S, Failed

KEY = "the group's"


@pytest.fixture
def pair() -> Iterator[tuple[barrier._Guest, socket.socket]]:
    """Rank 0's side of a connection, and the other one."""
    here, there = socket.socketpair()
    here.setblocking(False)
    there.settimeout(5)
    with here, there:
        yield barrier._Guest(here), there


def joining(guest: barrier._Guest, *, rank: Any = 1, of: Any = 3, key: str = KEY, **changes: Any) -> bytes:
    """What a task sends once it has heard the nonce of rank 0."""
    proof = barrier._proof(key, f"join {rank}", guest.nonce, "its")
    return json.dumps({"rank": rank, "of": of, "nonce": "its", "proof": proof, **changes}).encode() + b"\n"


def heard(guest: barrier._Guest, there: socket.socket, sent: bytes) -> tuple[bool, dict[int, Any], bytes]:
    """Whether the connection is kept, who is present, and what is answered."""
    present: dict[int, Any] = {}
    there.sendall(sent)
    is_kept = barrier._hear(guest, True, 3, KEY, present)
    guest.connection.shutdown(socket.SHUT_WR)
    return is_kept, present, there.recv(LINE_BYTES)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_task_that_proves_itself_is_present_and_waits(pair: tuple[barrier._Guest, socket.socket], rank: int) -> None:
    guest, there = pair
    assert heard(guest, there, joining(guest, rank=rank)) == (True, {rank: guest}, b"")
    guest.since_s -= 10 * SAY_WITHIN_S
    assert barrier._hear(guest, False, 3, KEY, {}), "it has proved itself, and waits as long as the others take"


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "another group's"},
        {"proof": ""},
        {"proof": "é"},
        {"nonce": "another"},
        {"rank": "x"},
        {"rank": [1]},
        {"rank": 1e999},
        {"of": None},
    ],
)
def test_a_stranger_is_turned_away_and_hears_nothing_signed(
    pair: tuple[barrier._Guest, socket.socket], changes: dict[str, Any]
) -> None:
    guest, there = pair
    assert heard(guest, there, joining(guest, **changes)) == (False, {}, b"")


@pytest.mark.parametrize("sent", [b"\n", b"[]\n", b"[" * 4000 + b"\n", b"x" * (LINE_BYTES + 1), b"{}\n"])
def test_what_is_no_message_is_turned_away(pair: tuple[barrier._Guest, socket.socket], sent: bytes) -> None:
    guest, there = pair
    there.sendall(sent)
    is_kept = barrier._hear(guest, True, 3, KEY, {}) and barrier._hear(guest, True, 3, KEY, {})
    assert not is_kept


@pytest.mark.parametrize(("rank", "of"), [(0, 3), (3, 3), (-1, 3), (1, 4), (1, 2)])
def test_a_task_of_another_size_of_group_is_told_so_with_a_proof(
    pair: tuple[barrier._Guest, socket.socket], rank: int, of: int
) -> None:
    guest, there = pair
    is_kept, present, answer = heard(guest, there, joining(guest, rank=rank, of=of))
    reason = f"rank {rank} of {of}, and rank 0 waits for ranks 1 to 2"
    proof = barrier._proof(KEY, "failed " + reason, "its", guest.nonce)
    assert (is_kept, present, json.loads(answer)) == (False, {}, {"failed": reason, "proof": proof})


def test_a_connection_that_says_nothing_is_kept_for_a_while_and_one_that_ended_is_not(
    pair: tuple[barrier._Guest, socket.socket],
) -> None:
    guest, there = pair
    there.sendall(b'{"rank"')
    assert barrier._hear(guest, True, 3, KEY, {}), "the rest is on its way"
    assert barrier._hear(guest, True, 3, KEY, {}), "nothing has come"
    guest.since_s = time.monotonic() - SAY_WITHIN_S + 5
    assert barrier._hear(guest, False, 3, KEY, {})
    guest.since_s = time.monotonic() - SAY_WITHIN_S - 1
    assert not barrier._hear(guest, False, 3, KEY, {})
    there.close()
    assert not barrier._hear(guest, True, 3, KEY, {})


def asked(guest: barrier._Guest, there: socket.socket, answer: dict[str, str] | None) -> BaseException | None:
    """The error of a task that asks to be let go and gets this answer of rank 0; None: there was no error.

    Without an answer rank 0 closes the connection. A proof of `right` stands for the one that belongs there.
    """
    raised: list[BaseException | None] = []

    def ask() -> None:
        try:
            barrier._ask(there, 3, 1, KEY)
            raised.append(None)
        except BaseException as e:  # noqa: BLE001 — handed to the test
            raised.append(e)

    asking = threading.Thread(target=ask)
    asking.start()
    guest.connection.setblocking(True)
    guest.connection.settimeout(5)
    barrier._send(guest, {"nonce": guest.nonce})
    assert barrier._hear(guest, True, 3, KEY, {})
    if answer is not None:
        words = "failed " + answer["failed"] if "failed" in answer else "go"
        right = barrier._proof(KEY, words, guest.its_nonce, guest.nonce)
        barrier._send(guest, {name: right if value == "right" else value for name, value in answer.items()})
    guest.connection.shutdown(socket.SHUT_RDWR)
    asking.join(5)
    return raised[0]


def test_a_task_that_rank_0_lets_go_goes(pair: tuple[barrier._Guest, socket.socket]) -> None:
    assert asked(*pair, {"go": "right"}) is None


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ({"failed": "rank 2 is missing", "proof": "right"}, Failed, "rank 2 is missing"),
        ({"failed": "rank 2 is missing", "proof": "wrong"}, ValueError, "does not prove"),
        ({"go": "wrong"}, ValueError, "does not prove"),
        ({"go": ""}, ValueError, "does not prove"),
        ({}, KeyError, "go"),
        (None, ConnectionResetError, "rank 0 has ended, or is another group's"),
    ],
)
def test_only_a_proof_lets_a_task_go_or_ends_its_wait(
    pair: tuple[barrier._Guest, socket.socket], answer: dict[str, str] | None, kind: type[Exception], message: str
) -> None:
    raised = asked(*pair, answer)
    assert type(raised) is kind
    assert message in str(raised)
