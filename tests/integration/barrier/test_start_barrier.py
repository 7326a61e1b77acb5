"""All slots go on together, or each reports why not. On the loopback network, with processes where one dies."""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.barrier import LATE, REFUSED, Wait
from clusterctl_bootstrap.node.barrier_lines import Lines

from tests.integration.barrier.waiting import SECRET, Hall, Threads, a_hall

_NUMBERS = itertools.count(1)


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    """Four nodes."""
    address = f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}.{next(_NUMBERS)}"
    with a_hall(tmp_path, address, 4) as made:
        yield made


def until(is_so: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
    give_up = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < give_up, f"not within {timeout_s} s: {what}"
        time.sleep(0.01)


def hears_of(wait: Wait, *slots: int) -> Callable[[], bool]:
    """Whether this slot has heard that exactly these slots are missing."""
    return lambda: not wait.trouble and sorted(wait.missing) == list(slots)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)], ids=["slot 0 first", "slot 0 last"])
def test_all_go_when_the_last_has_come(hall: Hall, order: tuple[int, ...]) -> None:
    nodes = [hall.process(slot) for slot in order]
    for node in nodes:
        code, out, err = node.ended()
        assert (code, err) == (0, "")
        assert json.loads(out)["barrier"] == "start"


def test_nobody_goes_before_the_last_has_come(hall: Hall) -> None:
    threads = Threads()
    waits = [threads.start(hall.wait(slot)) for slot in (0, 1, 2)]
    until(hears_of(waits[1], 3), "slot 1 hears of slot 3")
    assert threads.outcomes == {}
    threads.start(hall.wait(3))
    assert threads.joined() == ["met"] * 4


def test_a_cluster_of_one_waits_for_nobody(hall: Hall) -> None:
    threads = Threads()
    threads.start(hall.wait(0, nodes=1))
    assert threads.joined() == ["met"]


def test_when_time_is_over_everybody_names_all_who_are_missing(hall: Hall) -> None:
    threads = Threads()
    for slot in (0, 1):
        threads.start(hall.wait(slot, timeout_s=1))
    for outcome in threads.joined():
        assert outcome.startswith(f"{LATE}: not met in time, missing: ")
        assert "train-2, train-3" in outcome


def test_without_slot_0_the_others_name_it_with_the_reason(hall: Hall) -> None:
    code, out, err = hall.process(1, timeout="1s").ended()
    assert (code, out) == (LATE, "")
    assert err.startswith("barrier start: not met in time, missing: train-0 (")
    assert "Connection refused" in err


def test_who_is_missing_is_said_while_one_waits(hall: Hall, capsys: pytest.CaptureFixture[str]) -> None:
    threads = Threads()
    lines: list[str] = []

    def both_name_them() -> bool:
        lines.extend(capsys.readouterr().err.splitlines())
        return lines.count("barrier start: waits for train-2, train-3") == 2

    for slot in (0, 1):
        threads.start(hall.wait(slot)).reported_s -= 9  # as if nine seconds had passed in silence
    until(both_name_them, "both say who is missing")
    for slot in (2, 3):
        threads.start(hall.wait(slot))
    assert threads.joined() == ["met"] * 4


def test_slot_0_may_be_killed_and_begin_anew_while_others_wait(hall: Hall) -> None:
    first, threads = hall.process(0), Threads()
    waits = [threads.start(hall.wait(slot)) for slot in (1, 2)]
    until(hears_of(waits[0], 3), "slot 1 hears of slot 3")
    first.kill()
    until(lambda: waits[0].trouble != "", "slot 1 sees that slot 0 is gone")
    again = hall.process(0)
    until(hears_of(waits[0], 3), "slot 1 hears from slot 0 again")
    threads.start(hall.wait(3))
    assert again.ended()[0] == 0
    assert threads.joined() == ["met"] * 3


def test_a_killed_process_of_another_slot_may_come_again(hall: Hall) -> None:
    threads = Threads()
    host = threads.start(hall.wait(0))
    crashed = hall.process(1)
    until(lambda: 1 not in host.missing, "slot 1 is in")
    crashed.kill()
    for slot in (1, 2, 3):
        threads.start(hall.wait(slot))
    assert threads.joined() == ["met"] * 4


def test_with_another_secret_neither_side_believes_the_other(hall: Hall) -> None:
    threads = Threads()
    threads.start(hall.wait(0, timeout_s=6))
    threads.start(Wait(hall.facts(1), SECRET[::-1], "start", 5))
    unknown = "what answers there does not know the secret that this node knows"
    assert threads.joined() == [
        f"{LATE}: not met in time, missing: train-1, train-2, train-3",
        f"{LATE}: not met in time, missing: train-0 ({unknown})",
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"generation": 2}, "generation 2 was offered, 3 is here"),
        ({"nodes": 5}, "nodes 5 was offered, 4 is here"),
    ],
)
def test_another_membership_is_refused_with_both_numbers(hall: Hall, changes: dict[str, int], reason: str) -> None:
    threads = Threads()
    host = threads.start(hall.wait(0, timeout_s=3))
    threads.start(hall.wait(2, timeout_s=3))
    until(lambda: host.missing == [1, 3], "slot 2 is in")
    threads.start(Wait(hall.facts(1, **changes), SECRET, "start", 20))
    hosts, others, its = threads.joined()
    assert its == f"{REFUSED}: slot 0 refused this node: {reason}"
    for outcome in (hosts, others):
        assert outcome.endswith(f"missing: train-1 ({reason}), train-3"), "who waits learns why the slot does not come"


def test_who_was_refused_and_comes_with_the_right_membership_is_let_in(hall: Hall) -> None:
    threads, early = Threads(), Threads()
    host = threads.start(hall.wait(0, timeout_s=3))
    early.start(hall.wait(1, generation=2))
    assert early.joined()[0].startswith(f"{REFUSED}: ")
    threads.start(hall.wait(1, timeout_s=3))
    until(lambda: host.missing == [2, 3], "slot 1 is in")
    assert [outcome.partition("missing: ")[2] for outcome in threads.joined()] == ["train-2, train-3"] * 2


@pytest.mark.parametrize("slot", [0, 1])
def test_a_second_process_of_a_slot_is_refused(hall: Hall, slot: int) -> None:
    threads = Threads()
    host = threads.start(hall.wait(0))
    threads.start(hall.wait(1))
    until(lambda: host.missing == [2, 3], "slot 1 is in")
    code, _, err = hall.process(slot).ended()
    assert (code, f"slot {slot} waits" in err) == (REFUSED, True), err
    for late in (2, 3):
        threads.start(hall.wait(late))
    assert threads.joined() == ["met"] * 4, "the first one was not disturbed"


def test_a_second_process_does_not_slip_through_when_all_go(hall: Hall) -> None:
    threads, second = Threads(), Threads()
    host = threads.start(hall.wait(0))
    threads.start(hall.wait(1))
    until(lambda: host.missing == [2, 3], "slot 1 is in")
    second.start(hall.wait(1, timeout_s=3))
    for slot in (2, 3):
        threads.start(hall.wait(slot))
    assert threads.joined() == ["met"] * 4
    assert second.joined()[0].startswith((f"{LATE}: ", f"{REFUSED}: "))


def test_one_name_serves_round_after_round(hall: Hall) -> None:
    """Nobody finishes a round that another has not begun."""
    begun = [0] * 4
    wrong: list[str] = []

    def run(slot: int) -> None:
        for number in range(1, 6):
            begun[slot] = number
            hall.wait(slot).meet()
            if min(begun) < number:
                wrong.append(f"slot {slot} finished round {number} while {begun}")

    threads = [threading.Thread(target=run, args=(slot,), daemon=True) for slot in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert begun == [5] * 4
    assert wrong == []


def test_two_names_do_not_disturb_each_other(hall: Hall) -> None:
    threads = Threads()
    for slot in range(4):
        threads.start(hall.wait(slot, "load"))
        threads.start(hall.wait(slot, "train"))
    assert threads.joined() == ["met"] * 8


KNOCKS = (b"", b"[]\n", b"{}\n", b'[{"slot": 1}, "x"]\n', b"\xff\n", b'["', b"[1, 2, 3]\n", b'[{}, "\xc3\xa4"]\n')


def test_knocks_of_strangers_disturb_nobody(hall: Hall) -> None:
    threads = Threads()
    host = threads.start(hall.wait(0))
    until(lambda: knocked(host, b"GET / HTTP/1.0\r\n\r\n"), "the port is open")
    for knock in KNOCKS:
        assert knocked(host, knock)
    for slot in (1, 2, 3):
        threads.start(hall.wait(slot))
    assert threads.joined() == ["met"] * 4


def knocked(host: Wait, sent: bytes) -> bool:
    try:
        with socket.create_connection(host.place, timeout=5) as connection:
            connection.sendall(sent)
            return True
    except ConnectionRefusedError:
        return False


CHALLENGES = ["go", "0123", 5, {"host": "x"}, ["go"]]


@pytest.mark.parametrize("challenge", CHALLENGES, ids=str)
def test_a_host_without_the_secret_releases_nobody(hall: Hall, challenge: object) -> None:
    """Whatever it asks to be proven, the proof that it hears is not the one that it has to give."""
    wait = hall.wait(1, timeout_s=1)
    with socket.create_server(wait.place) as door:
        threads = Threads()
        threads.start(wait)
        connection, _ = door.accept()
        with connection:
            lines = Lines(connection)
            lines.tell(challenge, 5)
            _, proof = lines.hear(5)
            lines.tell([{"go": True}, proof], 5)
    (outcome,) = threads.joined()
    assert outcome.startswith(f"{LATE}: ")
