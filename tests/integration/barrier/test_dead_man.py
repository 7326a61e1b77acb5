"""Nodes of one cluster send each other beats over the loopback network; their clocks are moved by hand."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.beats import opened, sealed
from clusterctl_bootstrap.node.dead_man import PORT, WHY, WHY_LOST, WHY_UNSURE

from tests.integration.barrier.dead_man_cluster import ALLOWED_S, SECRET, Cluster, beat, cut_off, deaf


@pytest.fixture(scope="module", autouse=True)
def root() -> None:
    """Slot 0's port is one that only root can take."""
    if os.geteuid() != 0:
        pytest.fail("these tests take a port below 1024: run them as root")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Four nodes that have seen each other."""
    made = Cluster(tmp_path, 4)
    assert made.run(10) == {}
    yield made
    made.end()


def test_nodes_that_see_each_other_live(cluster: Cluster) -> None:
    assert cluster.run(10 * ALLOWED_S) == {}


def test_without_slot_0_the_others_end_when_the_time_is_over(cluster: Cluster) -> None:
    cluster.silent = {0}
    assert cluster.run(ALLOWED_S - 15) == {}
    verdicts = cluster.run(16)
    assert sorted(verdicts) == [1, 2, 3]
    assert verdicts[1].startswith("dead man: no slot 0 seen for 6")


def test_a_node_that_is_cut_off_ends_and_the_others_live(cluster: Cluster) -> None:
    cluster.nodes[3].door = deaf(cluster.nodes[3].door)
    assert sorted(cluster.run(ALLOWED_S + 15)) == [3]


@pytest.mark.parametrize(("gone", "ends"), [({3}, False), ({2, 3}, True), ({1, 2, 3}, True)])
def test_slot_0_ends_without_a_majority(cluster: Cluster, gone: set[int], ends: bool) -> None:
    cluster.silent = gone
    verdicts = cluster.run(2 * ALLOWED_S)
    assert list(verdicts) == ([0] if ends else [])
    if ends:
        assert verdicts[0].startswith(f"dead man: {4 - len(gone)} of 4 nodes seen for ")


def test_slot_0_whose_port_another_program_has_does_not_take_the_others_for_gone(tmp_path: Path) -> None:
    made = Cluster(tmp_path, 4)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as squatter:
        squatter.bind(made.place)
        assert sorted(made.run(ALLOWED_S + 15)) == [1, 2, 3]
    assert not made.nodes[0].is_alone
    made.end()


def speakers(cluster: Cluster) -> list[int]:
    """The slots that would have AWS end what is left."""
    return [slot for slot, node in enumerate(cluster.nodes) if node.ends_all]


@pytest.mark.parametrize(
    ("silent", "speaker"),
    [({0}, [1]), ({0, 1}, [2]), ({0, 3}, [1]), ({1, 3}, [0]), ({0, 2, 3}, []), ({1, 2, 3}, [0]), ({3}, [])],
    ids=["slot 0", "lower half", "half with slot 0", "half without it", "all but one", "all but slot 0", "one"],
)
def test_where_half_or_more_are_without_slot_0_the_lowest_has_aws_end_the_rest(
    cluster: Cluster, silent: set[int], speaker: list[int]
) -> None:
    cluster.silent = silent
    cluster.run(2 * ALLOWED_S)
    assert speakers(cluster) == speaker
    for slot in set(range(4)) - {*speaker, *silent}:
        cluster.nodes[slot].last_words(1)
    assert all(only for _, _, only in cluster.asked)


def test_who_is_cut_off_alone_speaks_for_nobody_and_has_aws_look_for_slot_0(cluster: Cluster) -> None:
    cluster.nodes[1].door = deaf(cluster.nodes[1].door)
    assert sorted(cluster.run(2 * ALLOWED_S)) == [1]
    assert speakers(cluster) == []
    for node in cluster.nodes:
        node.last_words(1)
        node.last_words(1)
    assert cluster.asked == [(1, WHY_UNSURE, True)]


def test_of_fewer_than_half_the_lowest_has_aws_look_for_slot_0(tmp_path: Path) -> None:
    """Slots 0, 1, 2 and 4 are gone: slots 3 and 5 cannot tell that from a cut."""
    six = Cluster(tmp_path, 6)
    six.run(10)
    six.silent = {0, 1, 2, 4}
    assert sorted(six.run(2 * ALLOWED_S)) == [3, 5]
    assert speakers(six) == []
    for slot in (5, 3):
        six.nodes[slot].last_words(1)
    assert six.asked == [(3, WHY_UNSURE, True)]
    six.end()


@pytest.mark.parametrize(("silent", "asked"), [({0}, (1, WHY_LOST, False)), ({1, 2, 3}, (0, WHY, False))])
def test_who_knows_that_the_cluster_is_over_has_aws_end_it_without_a_look(
    cluster: Cluster, silent: set[int], asked: tuple[int, str, bool]
) -> None:
    cluster.silent = silent
    cluster.run(2 * ALLOWED_S)
    for slot in set(range(4)) - silent:
        cluster.nodes[slot].last_words(1)
    assert cluster.asked == [asked]


def test_who_is_to_speak_stays_so_when_the_others_have_ended_before(cluster: Cluster) -> None:
    cluster.silent = {0}
    cluster.run(2 * ALLOWED_S)
    cluster.silent = {0, 2, 3}
    cluster.run(2 * ALLOWED_S)
    assert speakers(cluster) == [1]


def test_of_two_nodes_the_one_that_is_left_has_aws_end_the_rest(tmp_path: Path) -> None:
    pair = Cluster(tmp_path, 2)
    pair.run(10)
    pair.silent = {0}
    pair.run(2 * ALLOWED_S)
    assert speakers(pair) == [1]
    pair.end()


def test_both_halves_of_a_cluster_that_is_cut_in_two_end(cluster: Cluster) -> None:
    """Both end, so that neither half's speaker has AWS end nodes that would have lived on."""
    for slot in (0, 1):
        cut_off(cluster, slot, other_half={2, 3})
    for slot in (2, 3):
        cut_off(cluster, slot, other_half={0, 1})
    verdicts = cluster.run(3 * ALLOWED_S)
    assert (sorted(verdicts), speakers(cluster)) == ([0, 2, 3], [0, 2])


def test_who_was_to_speak_does_not_once_the_others_have_slot_0_again(cluster: Cluster) -> None:
    cluster.silent = {0}
    cluster.run(2 * ALLOWED_S)
    assert speakers(cluster) == [1]
    cut_off(cluster, 1, other_half={0})
    cluster.run(ALLOWED_S)  # by then its last beat to slot 0 is too old
    cluster.silent = set()
    assert sorted(cluster.run(30)) == [1]
    assert speakers(cluster) == []


def test_an_old_answer_makes_no_half(cluster: Cluster) -> None:
    """Somebody who does not know the secret replays beats in which slots 2 and 3 said that they were alone."""
    heard = [sealed(SECRET, {**beat(cluster, slot), "alone": True}) for slot in (2, 3)]
    cluster.silent = {0, 2, 3}
    place = (str(ipaddress.ip_address(cluster.place[0]) + 1), PORT)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mocker:
        for _ in range(2 * ALLOWED_S):
            for data in heard:
                mocker.sendto(data, place)
            cluster.run(1)
    assert (cluster.nodes[1].is_alone, speakers(cluster)) == (True, [])


def test_a_node_that_comes_back_takes_the_verdict_back(cluster: Cluster) -> None:
    cluster.silent = {0}
    assert len(cluster.run(ALLOWED_S + 15)) == 3
    cluster.silent = set()
    assert cluster.run(12) == {}


def test_who_was_frozen_has_not_waited_for_anybody(cluster: Cluster) -> None:
    cluster.now_s += 100 * ALLOWED_S
    assert cluster.run(1) == {}


def test_without_the_rule_nobody_ends(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, allowed_s=0)
    cluster.silent = {0}
    assert cluster.run(1000) == {}
    assert cluster.nodes[1].door is None


def test_a_cluster_of_one_ends_for_nobody(tmp_path: Path) -> None:
    assert Cluster(tmp_path, 1).run(10 * ALLOWED_S) == {}


def test_a_beat_that_is_said_again_is_no_sign_of_life(cluster: Cluster) -> None:
    """Somebody who does not know the secret heard what slots 2 and 3 sent, and sends it on and on."""
    heard = [sealed(SECRET, beat(cluster, slot)) for slot in (2, 3)]
    cluster.silent = {1, 2, 3}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mocker:
        for _ in range(3 * ALLOWED_S):
            for data in heard:
                mocker.sendto(data, cluster.place)
            verdicts = cluster.run(1)
    assert list(verdicts) == [0]


def test_a_flood_between_two_looks_hides_no_beat(cluster: Cluster) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(ALLOWED_S // 2):
            for _ in range(3000):
                stranger.sendto(b"x", cluster.place)
            cluster.now_s += 3
            assert [node.look() for node in reversed(cluster.nodes)] == [""] * 4


STRANGE = {
    "nothing": b"",
    "lists in lists": b"[" * 2000,
    "no JSON": b"\xff",
    "another secret": sealed(SECRET[::-1], {"id": "x"}),
    "no pair": b'{"a": 1}',
    "a proof that is no text": b'[{"id": "x"}, 7]',
    "words that are no object": b'["id", "x"]',
    "a proof with letters beyond ASCII": '[{"id": "x"}, "ü"]'.encode(),
}


@pytest.mark.parametrize("data", STRANGE.values(), ids=STRANGE.keys())
def test_what_strangers_send_is_nothing(data: bytes) -> None:
    assert opened(SECRET, data) is None


@pytest.mark.parametrize("slot", [0, 4, -1, "1", None, True])
def test_slot_0_hears_no_slot_that_there_is_not(cluster: Cluster, slot: object) -> None:
    words = {**beat(cluster, 1), "slot": slot, "theirs": cluster.nodes[0].own[0]}
    before = dict(cluster.nodes[0].heard_s)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(sealed(SECRET, words), cluster.place)
    cluster.silent = {1, 2, 3}
    cluster.run(1)
    assert cluster.nodes[0].heard_s == before
