"""`NodeConnection`, as other parts of clusterctl use it, against a real sshd."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.single.transport import NodeConnection

from tests.integration.cli.private_nodes import PLUGIN_WORDS

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster


def connect(cluster: LoopbackCluster, deadlines: Deadlines | None = None) -> NodeConnection:
    return NodeConnection.open(cluster.inventory, cluster.inventory.nodes[0], deadlines)


def test_one_connection_runs_several_commands(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node:
        assert node.run("cat; echo out").stdout == b"out\n"
        result = node.run("echo err >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr) == (3, b"", b"err\n")
        assert len(node.run("head -c 8000000 /dev/zero", timeout_s=30).stdout) == 8_000_000


def test_what_a_session_says_long_before_the_node_does_is_no_greeting(loopback_cluster: LoopbackCluster) -> None:
    """paramiko itself would wait 2 s for what comes after the session's own words."""
    loopback_cluster.by_proxy("sh", "-c", f"{PLUGIN_WORDS}sleep 2.5; exec nc {{host}} {{port}}")
    with connect(loopback_cluster) as node:
        assert node.run("echo there").stdout == b"there\n"


def test_a_session_behind_which_nobody_speaks_is_told_as_that(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.by_proxy("sh", "-c", f"{PLUGIN_WORDS}exec sleep 60")
    with pytest.raises(NodeFailure) as caught:
        connect(loopback_cluster, Deadlines(greeting_s=1))
    assert (caught.value.kind, caught.value.phase) == ("timeout", "greeting")
    done = loopback_cluster.run("ssh", "--node", "0,1", "--connect-timeout", "1", "true")
    assert b"train-[0-1] not reached: timeout (greeting)" in done.stderr


def test_a_command_that_a_signal_ends_is_no_lost_connection(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node:
        result = node.run("echo before; kill -KILL $$")
        assert (result.exit_code, result.stdout, result.ending) == (None, b"before\n", "a signal ended it")
        assert node.run("echo after").stdout == b"after\n"


def test_a_command_without_an_end_is_ended_in_its_time(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node, pytest.raises(NodeFailure, match=r"still ran after 0\.5 s") as caught:
        node.run("sleep 300", timeout_s=0.5)
    assert (caught.value.kind, caught.value.phase) == ("timeout", "command")


def test_a_node_that_stands_still_is_lost_and_not_waited_for(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster, Deadlines(silence_s=1.5)) as node:
        with pytest.raises(NodeFailure, match="no sign of life") as caught:
            node.run("echo $PPID >session; kill -STOP $PPID; sleep 10")
        os.kill(int((loopback_cluster.folder / "node-0" / "session").read_text()), signal.SIGCONT)
    assert caught.value.kind == "lost"


def test_a_quiet_command_on_a_living_node_is_not_lost(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster, Deadlines(silence_s=0.6)) as node:
        assert node.run("sleep 2; echo done").stdout == b"done\n"


def test_a_connection_that_breaks_during_a_command_is_lost(loopback_cluster: LoopbackCluster) -> None:
    broke = "the connection to train-0 broke"
    with connect(loopback_cluster) as node, pytest.raises(NodeFailure, match=broke) as caught:
        node.run("kill -KILL $PPID; sleep 1")
    assert caught.value.kind == "lost"
