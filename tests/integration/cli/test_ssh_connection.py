"""`NodeConnection`, as other parts of clusterctl use it, against a real sshd."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.single.transport import NodeConnection

from tests.integration.cli.waiting import has_ended

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster


def connect(cluster: LoopbackCluster, deadlines: Deadlines | None = None) -> NodeConnection:
    return NodeConnection.open(cluster.inventory, cluster.inventory.nodes[0], deadlines)


def test_one_connection_runs_several_commands(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node:
        assert node.run("cat", stdin=b"abc").stdout == b"abc"
        result = node.run("echo err >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr) == (3, b"", b"err\n")


def test_lines_come_as_they_are_printed_and_stdin_ends_with_the_reader(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node:
        lines = node.lines("echo $$; echo two; exec cat")
        pid = int(next(lines))
        assert next(lines) == "two"
        lines.close()  # type: ignore[attr-defined]  # it is a generator
    assert has_ended(pid)


def test_a_large_answer_while_much_is_sent_does_not_block(loopback_cluster: LoopbackCluster) -> None:
    data = os.urandom(8_000_000)
    with connect(loopback_cluster) as node:
        assert node.run("cat", stdin=data, timeout_s=30).stdout == data


def test_a_command_without_an_end_is_ended_in_its_time(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node, pytest.raises(NodeFailure, match=r"still ran after 0\.5 s") as caught:
        node.run("sleep 300", timeout_s=0.5)
    assert (caught.value.kind, caught.value.phase) == ("timeout", "command")


@pytest.mark.alone
def test_a_node_that_stands_still_is_lost_and_not_waited_for(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster, Deadlines(silence_s=1.5)) as node:
        lines = node.lines("echo $PPID; sleep 300")
        session = session_of(lines)
        os.kill(session, signal.SIGSTOP)
        try:
            began_at = time.monotonic()
            with pytest.raises(NodeFailure, match="no sign of life") as caught:
                next(lines)
            assert time.monotonic() - began_at < 6
        finally:
            os.kill(session, signal.SIGCONT)
    assert caught.value.kind == "lost"


def test_a_quiet_command_on_a_living_node_is_not_lost(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster, Deadlines(silence_s=0.6)) as node:
        assert node.run("sleep 2; echo done").stdout == b"done\n"


def test_a_connection_that_breaks_during_a_command_is_lost(loopback_cluster: LoopbackCluster) -> None:
    with connect(loopback_cluster) as node:
        lines = node.lines("echo $PPID; sleep 300")
        os.kill(session_of(lines), signal.SIGKILL)
        with pytest.raises(NodeFailure, match="the connection to train-0 broke") as caught:
            next(lines)
    assert caught.value.kind == "lost"


def session_of(lines: Iterator[str]) -> int:
    """The sshd process of this connection, which the command has printed."""
    pid = int(next(lines))
    assert Path(f"/proc/{pid}/comm").read_text().startswith("sshd")
    return pid
