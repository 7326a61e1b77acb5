"""How often a command has to wait for a node's answer: what a far-away cluster is slow by."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.counted_way import CountedWay
from tests.integration.cli.waiting import comes_true

HERE = "127.0.19.1"
COLD, WARM = 7, 1
"""Greeting, key exchange, service, key offered, key proved, channel, command; and the command alone."""
COPY = 23
"""Of a small new file to a node, login and checksum among them."""


@pytest.fixture
def way(loopback_cluster: LoopbackCluster) -> Iterator[CountedWay]:
    """The only way to the only node."""
    node = loopback_cluster.inventory.nodes[0]
    with CountedWay(HERE, node.private_ip, loopback_cluster.port).open() as way:
        nodes = (replace(node, private_ip=HERE),)
        loopback_cluster.write_inventory(replace(loopback_cluster.inventory, nodes=nodes))
        yield way


def run_ssh(cluster: LoopbackCluster, *words: str) -> tuple[int, bytes]:
    """Exit code and output of a command without input, whose watcher needs no channel of its own."""
    argv = cluster.command("ssh", "--node", "0", *words)
    done = subprocess.run(argv, env=cluster.environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    return done.returncode, done.stdout


def test_a_first_command_is_seven_round_trips(loopback_cluster: LoopbackCluster, way: CountedWay) -> None:
    way.allow(COLD)
    assert run_ssh(loopback_cluster, "--cold", "echo here") == (0, b"here\n")
    way.allow(COLD - 1)
    assert run_ssh(loopback_cluster, "--cold", "--connect-timeout", "2s", "echo here") == (255, b""), "they are counted"


def test_the_next_command_is_one(
    loopback_cluster: LoopbackCluster, way: CountedWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERCTL_WARM", "yes")
    way.allow(COLD + 1)  # the channel for the next command is opened when nobody waits
    assert run_ssh(loopback_cluster, "echo first") == (0, b"first\n")
    assert comes_true((loopback_cluster.home / "warm" / "socket").exists)
    for word in (b"second", b"third"):
        way.allow(COLD)
        way.allow(WARM)
        assert run_ssh(loopback_cluster, f"echo {word.decode()}") == (0, word + b"\n")
    way.allow(COLD)


def test_a_new_file_is_made_without_a_look_whether_it_is_there(
    loopback_cluster: LoopbackCluster, way: CountedWay, tmp_path: Path
) -> None:
    source, target = tmp_path / "train.py", tmp_path / "there.py"
    source.write_text("print('here')\n")
    way.allow(COPY)
    done = loopback_cluster.run("cp", str(source), f"0:{target}")
    assert (done.returncode, target.read_text()) == (0, "print('here')\n"), done.stderr
