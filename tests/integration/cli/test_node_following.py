"""Nodes that `up` waits for, each a real sshd: one loop follows them all, and gives each the membership once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.lifecycle.membership import later_modules
from clusterctl.lifecycle.readiness import NodeWatch, Patience, ReadyWatch, why_not_ready
from clusterctl.lifecycle.script_delivery import AWAITING

from tests.integration.cli.private_nodes import instance, made_private
from tests.integration.cli.waiting import comes_true, has_ended

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

SCRIPTS = b'{"setup.sh": "id"}'
MEMBERSHIP = b'{"generation": 7}'
# What the node's agent says lies in `says`. Each process that follows writes its id, and ends with its input.
AGENT = """#!/bin/sh
case $1 in
status)
    echo $$ >>followers
    echo "Welcome to a node"
    while sleep 0.05; do cat says; done &
    cat >/dev/null
    kill $!
    ;;
apply)
    [ ! -e refusal ] || { cat refusal; exit 1; }
    cat >>applied
    ;;
esac
"""
PYTHON = """#!/bin/sh
shift 2
if [ $# = 1 ]; then
    [ ! -e refused ] || { cat refused >&2; exit 1; }
    head -c "$1" >>scripts
    mv next says
    exit
fi
head -c "$1" >installed
shift
exec "$@"
"""
"""Takes the modules as `INSTALLER` does, and leaves them alone; or scripts as `TAKER` does, after which the node says
what lies in `next`."""


@pytest.fixture
def nodes(loopback_cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch) -> LoopbackCluster:
    """Four nodes that boot, with stand-ins for sudo, the agent, and the python that takes what comes later."""
    monkeypatch.setenv("CLUSTERCTL_HOME", str(loopback_cluster.home))
    for slot in range(4):
        folder = loopback_cluster.folder / f"node-{slot}"
        programs = {
            "sudo": '#!/bin/sh\nshift\nexec "$@"\n',
            "python3": PYTHON,
            "clusterctl-node": AGENT,
        }
        (folder / "bin").mkdir()
        for name, text in programs.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        say(loopback_cluster, slot, "network")
    return loopback_cluster


class Watched:
    """The watch of all four nodes, and the changes that it has reported."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.changes: list[NodeWatch] = []
        file = cluster.home / "inventory" / "train.json"
        self.watch = ReadyWatch(file, changed=self.changes.append, scripts=SCRIPTS)
        for slot in range(4):
            self.watch.start(slot, f"train-{slot}")

    def at(self, slot: int) -> NodeWatch:
        return self.watch.now()[slot]

    def settled(self) -> tuple[NodeWatch, ...]:
        """The watches once the membership is known and nobody is waited for any more."""
        self.watch.settle(MEMBERSHIP)
        return self.watch.wait(Patience(usual_s=30), on_tick=lambda: None)


@pytest.fixture
def watched(nodes: LoopbackCluster) -> Iterator[Watched]:
    found = Watched(nodes)
    yield found
    found.watch.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "nodes"], "the loop has ended"


def say(cluster: LoopbackCluster, slot: int, phase: str, *, file: str = "says") -> None:
    """The node is in this phase from now on."""
    folder = cluster.folder / f"node-{slot}"
    (folder / "new").write_text(f'{{"phase": "{phase}", "generation": 0, "error": null}}\n')
    (folder / "new").rename(folder / file)


def followers(cluster: LoopbackCluster, slot: int) -> list[int]:
    """The process ids of all that have followed the node, in order."""
    file = cluster.folder / f"node-{slot}" / "followers"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def applied(cluster: LoopbackCluster, slot: int) -> bytes:
    return (cluster.folder / f"node-{slot}" / "applied").read_bytes()


def test_each_node_has_the_membership_once_it_is_ready_and_the_membership_known(
    nodes: LoopbackCluster, watched: Watched
) -> None:
    assert comes_true(lambda: {watch.phase for watch in watched.watch.now()} == {"network"})
    for slot in range(4):
        say(nodes, slot, "ready")
    assert comes_true(lambda: {watch.phase for watch in watched.watch.now()} == {"ready"})
    assert not any((nodes.folder / f"node-{slot}" / "applied").exists() for slot in range(4)), "nobody knows it yet"
    assert all(watch.is_ready for watch in watched.settled())
    assert [applied(nodes, slot) for slot in range(4)] == [MEMBERSHIP] * 4
    assert all((nodes.folder / f"node-{slot}" / "installed").read_bytes() == later_modules() for slot in range(4))
    assert [len(followers(nodes, slot)) for slot in range(4)] == [1] * 4, "over the connection that was there"
    assert comes_true(lambda: all(has_ended(followers(nodes, slot)[0]) for slot in range(4)))


def test_a_node_that_is_lost_or_not_there_yet_is_found_again_and_holds_up_nobody(
    nodes: LoopbackCluster, watched: Watched
) -> None:
    assert comes_true(lambda: watched.at(0).phase == "network")
    nodes.stop(1)
    (first,) = followers(nodes, 0)
    os.kill(parent(first), signal.SIGKILL)  # the sshd process of that connection: bash has become the agent
    assert comes_true(lambda: len(followers(nodes, 0)) == 2)
    for slot in range(4):
        say(nodes, slot, "ready")
    watched.watch.settle(MEMBERSHIP)
    assert comes_true(lambda: all(watched.at(slot).is_ready for slot in (0, 2, 3)))
    nodes.start(1)
    assert all(watch.is_ready for watch in watched.settled())
    assert [applied(nodes, slot) for slot in range(4)] == [MEMBERSHIP] * 4


def test_what_a_node_says_against_the_membership_and_another_host_key_are_final(
    nodes: LoopbackCluster, watched: Watched
) -> None:
    (nodes.folder / "node-1" / "refusal").write_text('{"error": "generation: 9 is there"}\n')
    nodes.change_host_key(2)
    (nodes.folder / "node-3" / "says").write_text('{"phase": 5}\n')
    for slot in (0, 1):
        say(nodes, slot, "ready")
    watched.watch.settle(MEMBERSHIP)
    assert comes_true(lambda: all(watched.at(slot).is_final for slot in (0, 1, 2)))
    assert watched.at(1).undelivered == "generation: 9 is there"
    assert "host key" in (watched.at(2).trouble or "")
    assert comes_true(lambda: "its agent's status cannot be read" in (watched.at(3).trouble or ""))
    assert not watched.at(3).is_final
    say(nodes, 3, "failed")
    assert [watch.phase for watch in watched.settled()] == ["ready", "ready", "no answer", "failed"]


def test_a_node_that_waits_for_scripts_is_sent_them_once_before_anybody_knows_the_membership(
    nodes: LoopbackCluster, watched: Watched
) -> None:
    for slot in range(4):
        say(nodes, slot, "scripts", file="next")
        say(nodes, slot, AWAITING if slot < 3 else "scripts")
    (nodes.folder / "node-2" / "refused").write_text("setup.sh changed since this machine was made\n")
    assert comes_true(lambda: all(watched.at(slot).phase == "scripts" for slot in (0, 1, 3)))
    assert [(nodes.folder / f"node-{slot}" / "scripts").read_bytes() for slot in (0, 1)] == [SCRIPTS] * 2
    assert not (nodes.folder / "node-3" / "scripts").exists(), "it does not wait for any"
    assert [len(followers(nodes, slot)) for slot in (0, 1)] == [2, 2], "followed again, over the same connection"
    assert comes_true(lambda: watched.at(2).undelivered is not None)
    assert not watched.at(2).is_final, "it may be the machine before this one"
    for slot in (0, 1, 3):
        say(nodes, slot, "ready")
    assert [watch.is_ready for watch in watched.settled()] == [True, True, False, True]
    assert why_not_ready(watched.at(2), now=datetime.now(UTC)) == [
        "train-2: it did not take its scripts: setup.sh changed since this machine was made"
    ]


@pytest.mark.parametrize("booting", [(0,), (0, 1)])
def test_private_nodes_are_followed_while_slot_0_boots_and_get_the_membership(
    nodes: LoopbackCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booting: tuple[int, ...]
) -> None:
    """The next node leads; where that one boots too, each node has a session of its own at first."""
    with contextlib.closing(made_private(nodes, tmp_path / "programs")) as private:
        for name, value in private.environ.items():
            monkeypatch.setenv(name, value)
        for slot in booting:
            nodes.stop(slot)
        watched = Watched(nodes)
        there = [slot for slot in range(4) if slot not in booting]
        assert comes_true(lambda: {watched.at(slot).phase for slot in there} == {"network"}, within_s=30)
        tried = [instance(0), instance(1)]
        assert private.sessions[:2] == tried
        own = {instance(slot) for slot in (2, 3)} if len(booting) == 2 else set()
        assert own <= set(private.sessions[2:])
        for slot in range(4):
            say(nodes, slot, "ready")
        for slot in booting:
            nodes.start(slot)
        assert all(watch.is_ready for watch in watched.settled())
        assert [applied(nodes, slot) for slot in range(4)] == [MEMBERSHIP] * 4
        watched.watch.stop()
        if len(booting) == 1:
            assert private.sessions == tried, "slot 0 was reached through slot 1"


def test_what_nobody_expected_ends_the_waiting(nodes: LoopbackCluster) -> None:
    def bug(watch: NodeWatch) -> None:
        raise KeyError(watch.name)

    watch = ReadyWatch(nodes.home / "inventory" / "train.json", changed=bug)
    watch.start(0, "train-0")
    with pytest.raises(KeyError):
        watch.wait(Patience(usual_s=30), on_tick=lambda: None)
    watch.stop()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
