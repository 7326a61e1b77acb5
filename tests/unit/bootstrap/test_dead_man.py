"""Which nodes end when some do not hear each other any more, and which of them has AWS end the rest."""

from __future__ import annotations

import json
import socket
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast  # parsed JSON; a door of the tests instead of a socket

import pytest
from clusterctl_bootstrap.node.dead_man import PORT, DeadMan
from clusterctl_bootstrap.node.environment import address
from clusterctl_bootstrap.node.trust import BARRIER_SECRET

from tests.unit.bootstrap.node_examples import PUSHED, born

NODES = 4
ALLOWED_S = 60
HALF_THE_CLUSTER = {frozenset({near, far}) for near in (0, 1) for far in (2, 3)}


@dataclass
class Network:
    """Datagrams between slots in memory; `cut` holds the pairs of slots that do not reach each other."""

    cut: set[frozenset[int]] = field(default_factory=set)
    waiting: dict[int, deque[tuple[bytes, int]]] = field(default_factory=lambda: defaultdict(deque))
    answers_of_slot_0: list[tuple[int, bytes]] = field(default_factory=list)
    """Receiving slot and datagram of all that slot 0 has sent."""

    def isolate(self, slot: int) -> None:
        self.cut |= {frozenset({slot, other}) for other in range(NODES) if other != slot}


@dataclass
class Door:
    """One slot's socket."""

    network: Network
    slot: int

    def sendto(self, data: bytes, place: tuple[str, int]) -> int:
        slots = {address(PUSHED["slot_cidr"], slot): slot for slot in range(NODES)}
        assert place[1] == PORT
        receiver = slots[place[0]]
        if frozenset({self.slot, receiver}) not in self.network.cut:
            self.network.waiting[receiver].append((data, self.slot))
            if self.slot == 0:
                self.network.answers_of_slot_0.append((receiver, data))
        return len(data)

    def recvfrom(self, most: int) -> tuple[bytes, tuple[str, int]]:
        if not self.network.waiting[self.slot]:
            raise BlockingIOError
        data, sender = self.network.waiting[self.slot].popleft()
        return data[:most], (address(PUSHED["slot_cidr"], sender), PORT)


class Nodes:
    """The rule on every node of a cluster, with one clock."""

    def __init__(self, folder: Path, *, dead_man_s: float = ALLOWED_S) -> None:
        self.network = Network()
        self.now_s = 1000.0
        self.started: list[tuple[int, str, bool]] = []
        """Slot, why, and whether AWS is to look first, of each execution that was asked for."""
        self.rules = [self._rule(folder, slot, dead_man_s) for slot in range(NODES)]
        self.reasons: dict[int, tuple[float, str]] = {}
        """Slot → after how many seconds it wanted to end, and why."""

    def _rule(self, folder: Path, slot: int, dead_man_s: float) -> DeadMan:
        root = folder / f"slot-{slot}"
        born(root, slot=slot, rank=slot)
        (root / BARRIER_SECRET).parent.mkdir(parents=True, exist_ok=True)
        (root / BARRIER_SECRET).write_bytes(b"secret of the cluster")
        pushed = {**PUSHED, "nodes": NODES, "dead_man_s": dead_man_s}
        (root / "var/lib/clusterctl/cluster.json").write_text(json.dumps(pushed))

        def start(
            root: Path, known: dict[str, Any], why: str, since: Any, wait_s: int, pause: Callable[[float], None],
            looks_first: bool,
        ) -> str:  # fmt: skip
            self.started.append((known["slot"], why, looks_first))
            return "asked AWS"

        rule = DeadMan(root, lambda: self.now_s, start)
        rule.door = cast(socket.socket, Door(self.network, slot))
        return rule

    def live(self, seconds: int, *, replays: bool = False) -> None:
        """Each node looks once a second until it wants to end; those that do say their last words at the end."""
        begun_s = self.now_s
        for _ in range(seconds):
            self.now_s += 1
            if replays:
                for receiver, data in self.network.answers_of_slot_0:
                    self.network.waiting[receiver].append((data, 0))
            for slot, rule in enumerate(self.rules):
                if slot in self.reasons:
                    continue
                reason = rule.look()
                if reason:
                    self.reasons[slot] = (self.now_s - begun_s, reason)
        for slot in self.reasons:
            self.rules[slot].last_words(5)


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    """Four nodes that have heard each other for a minute."""
    cluster = Nodes(tmp_path)
    cluster.live(60)
    return cluster


def test_nobody_ends_while_all_hear_each_other(nodes: Nodes) -> None:
    nodes.live(200)
    assert (nodes.reasons, nodes.started) == ({}, [])


def test_no_node_ends_where_the_cluster_has_no_rule(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, dead_man_s=0)
    for slot in range(NODES):
        cluster.network.isolate(slot)
    cluster.live(200)
    assert cluster.reasons == {}


def test_without_slot_0_all_end_after_the_time_and_the_lowest_of_them_has_aws_end_the_rest(nodes: Nodes) -> None:
    nodes.network.isolate(0)
    nodes.live(48)
    assert nodes.reasons == {}
    nodes.live(60)
    assert set(nodes.reasons) == set(range(NODES))
    assert nodes.reasons[0][1].startswith("dead man: 1 of 4 nodes seen for 6")
    assert nodes.reasons[1][1].startswith("dead man: no slot 0 seen for 6")
    # Slot 0 knows that it is without a majority, and so speaks for the cluster from its side.
    assert [execution for execution in nodes.started if execution[0] == 0] == [(0, "alone", False)]


def test_those_who_have_asked_each_other_name_one_that_speaks_for_all(nodes: Nodes) -> None:
    nodes.network.isolate(0)
    # They stay for as long as hooks save, and ask each other meanwhile.
    for _ in range(120):
        nodes.now_s += 1
        for rule in nodes.rules[1:]:
            rule.look()
    for rule in nodes.rules[1:]:
        rule.last_words(5)
        rule.last_words(5)  # a second call does nothing
    assert nodes.started == [(1, "lost", False)]


def test_one_node_that_hears_nobody_ends_alone_and_lets_aws_look_whether_slot_0_lives(nodes: Nodes) -> None:
    nodes.network.isolate(3)
    nodes.live(120)
    assert set(nodes.reasons) == {3}
    assert 50 <= nodes.reasons[3][0] <= 75
    assert nodes.started == [(3, "unsure", True)]


def test_a_cluster_cut_in_two_halves_is_over_for_both(nodes: Nodes) -> None:
    nodes.network.cut |= HALF_THE_CLUSTER
    for _ in range(120):
        nodes.now_s += 1
        reasons = [rule.look() for rule in nodes.rules]
    assert reasons[0].startswith("dead man: 2 of 4 nodes")
    assert reasons[1] == ""  # it hears slot 0, which ends it
    for rule in nodes.rules:
        rule.last_words(5)
    assert nodes.started == [(0, "alone", False), (2, "lost", False)]


def test_slot_0_that_comes_back_in_time_keeps_all(nodes: Nodes) -> None:
    nodes.network.isolate(0)
    nodes.live(50)
    nodes.network.cut.clear()
    nodes.live(200)
    assert nodes.reasons == {}


def test_a_decision_to_end_all_is_dropped_when_a_peer_hears_slot_0_again(nodes: Nodes) -> None:
    nodes.network.cut |= HALF_THE_CLUSTER
    for _ in range(120):
        nodes.now_s += 1
        nodes.rules[2].look()
        nodes.rules[3].look()
    assert nodes.rules[2].ends_all
    nodes.network.cut = {frozenset({2, 0}), frozenset({2, 1})}
    for _ in range(30):
        nodes.now_s += 1
        for rule in nodes.rules:
            rule.look()
    assert not nodes.rules[2].ends_all
    nodes.rules[2].last_words(5)
    assert nodes.started == [(2, "unsure", True)]


def test_time_in_which_a_node_was_frozen_does_not_count_against_the_others(nodes: Nodes) -> None:
    nodes.now_s += 3600
    nodes.live(30)
    assert nodes.reasons == {}


def test_what_slot_0_said_before_it_went_is_believed_no_longer_when_somebody_repeats_it(nodes: Nodes) -> None:
    nodes.network.isolate(0)
    nodes.live(160, replays=True)
    assert {1, 2, 3} <= set(nodes.reasons)


def test_a_peer_that_is_gone_does_not_count_for_ever_among_those_without_slot_0(nodes: Nodes) -> None:
    nodes.network.cut |= HALF_THE_CLUSTER
    for _ in range(120):
        nodes.now_s += 1
        nodes.rules[2].look()
        nodes.rules[3].look()
    before = nodes.rules[3]
    nodes.network.isolate(3)
    for _ in range(60):
        nodes.now_s += 1
        before.look()
    # It had seen slot 2 without slot 0; alone now, it is the lowest of those it knows of, and unsure.
    before.last_words(5)
    assert nodes.started == [(3, "unsure", True)]


def test_the_shortest_time_that_may_be_allowed_is_long_enough_for_several_beats(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, dead_man_s=10)
    cluster.live(60)
    assert cluster.reasons == {}
