"""Only root may send to the port of the dead man's beats: what a node does for that, and what it says if it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.node.apply import apply
from clusterctl_bootstrap.node.beat_port import AGAIN_S, BeatPort

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, pushed, routed


def a_port(folder: Path, *, dead_man_s: int = 600, nodes: int = 4, with_systemd: bool = True) -> BeatPort:
    """The port of a node with a membership, on a machine that records commands."""
    root = routed(born(folder, slot=0, rank=0, with_systemd=with_systemd))
    assert apply(root, pushed(dead_man_s=dead_man_s, nodes=nodes), FakeOutside())["ok"]
    outside = FakeOutside()
    return BeatPort(root, outside, outside.monotonic)


def commands(port: BeatPort) -> list[list[str]]:
    assert isinstance(port.outside, FakeOutside)
    return port.outside.commands


def test_users_and_containers_are_kept_from_the_port_and_root_is_not(tmp_path: Path) -> None:
    port = a_port(tmp_path)
    port.look()
    ((nft, rules),) = commands(port)
    assert nft == "nft"
    chains = [[line.strip() for line in part.splitlines()[1:]] for part in rules.split("chain ")[1:]]
    assert [lines[:3] for lines in chains] == [
        ["type filter hook output priority 0", "udp dport 329 meta skuid 0 accept", "udp dport 329 drop"],
        ["type filter hook forward priority 0", "udp dport 329 drop", "}"],
        ["type filter hook input priority 0", "udp dport 329 ip saddr 10.0.8.0/21 accept", "udp dport 329 drop"],
    ]
    assert "169.254" not in rules, "the rule of the metadata service is another table"


def test_without_nft_iptables_does_the_same(tmp_path: Path) -> None:
    port = a_port(tmp_path)
    assert isinstance(port.outside, FakeOutside)
    port.outside.answer = lambda argv: (1, "no such") if argv[0] == "nft" or "-C" in argv else None
    port.look()
    made = [" ".join(argv) for argv in commands(port) if "-I" in argv]
    assert made == [
        "iptables -w 5 -t filter -I OUTPUT -p udp --dport 329 -m owner ! --uid-owner 0 -j DROP",
        "iptables -w 5 -t mangle -I FORWARD -p udp --dport 329 -j DROP",
        "iptables -w 5 -t filter -I INPUT -p udp --dport 329 ! -s 10.0.8.0/21 -j DROP",
    ]


def test_rules_that_stand_are_not_made_twice_by_iptables(tmp_path: Path) -> None:
    port = a_port(tmp_path)
    assert isinstance(port.outside, FakeOutside)
    port.outside.answer = lambda argv: (127, "nft: not found") if argv[0] == "nft" else None
    port.look()
    asked = [argv for argv in commands(port) if argv[0] == "iptables"]
    assert ["-C" in argv for argv in asked] == [True] * 3


def test_a_port_that_stays_open_is_told_at_each_look_until_it_is_closed(tmp_path: Path) -> None:
    port = a_port(tmp_path)
    assert isinstance(port.outside, FakeOutside)
    port.outside.answer = lambda argv: (1, "not permitted")
    for _ in range(2):
        with pytest.raises(OSError, match="port 329 is open to every user of this node: nft: not permitted; iptables:"):
            port.look()
    port.outside.answer = lambda argv: None
    port.outside.sleep(AGAIN_S)
    port.look()


def test_rules_that_somebody_took_away_are_made_again(tmp_path: Path) -> None:
    port = a_port(tmp_path)
    for _ in range(3):
        port.look()
    assert len(commands(port)) == 1
    port.outside.sleep(AGAIN_S)
    port.look()
    assert len(commands(port)) == 2


@pytest.mark.parametrize(
    ("dead_man_s", "nodes", "with_systemd"),
    [(0, 4, True), (600, 1, True), (600, 4, False)],
    ids=["no rule", "a cluster of one", "a process machine"],
)
def test_where_nobody_sends_beats_there_is_no_rule(
    tmp_path: Path, dead_man_s: int, nodes: int, with_systemd: bool
) -> None:
    port = a_port(tmp_path, dead_man_s=dead_man_s, nodes=nodes, with_systemd=with_systemd)
    port.look()
    assert commands(port) == []
