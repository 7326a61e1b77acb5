"""`clusterctl ssh` to several nodes, against real sshd processes."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.link import QUESTIONS

from tests.integration.cli.conftest import address
from tests.integration.cli.kept_connections import WARM
from tests.integration.cli.waiting import comes_true, has_ended

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

WHO = "echo $SSH_CONNECTION | cut -d' ' -f3"
KEEPALIVE_S = Deadlines().silence_s / QUESTIONS

TAKEN = """python3 -c '
import fcntl, termios, time
while any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))):
    time.sleep(0.01)'"""
"""On a node: until sshd has read all that was written to it so far, which on a busy machine takes a while."""


def test_nodes_behind_a_bastion_that_takes_one_connection_at_a_time_are_all_reached(
    loopback_cluster: LoopbackCluster,
) -> None:
    """As with many nodes and the usual MaxStartups: some are turned away, and asked for again."""
    _, log = loopback_cluster.behind_bastion(max_startups=1)
    done = loopback_cluster.run("ssh", "--node", "all", WHO)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.decode().splitlines()) == [f"[train-{n}] 127.0.17.{n + 1}" for n in range(4)]
    assert "MaxStartups" in log.read_text(), "nobody was turned away"


def test_a_bastion_that_takes_no_connection_is_told_in_time(loopback_cluster: LoopbackCluster) -> None:
    port, log = loopback_cluster.behind_bastion(max_startups=1)
    with contextlib.ExitStack() as others:

        def takes_the_place() -> bool:
            """It is greeted, and does not log in."""
            return others.enter_context(socket.create_connection((address(0), port))).recv(4) == b"SSH-"

        assert comes_true(takes_the_place)
        done = loopback_cluster.run("ssh", "--node", "0-1", "--connect-timeout", "2", WHO)
    assert done.returncode == 4, log.read_text()
    assert (
        b"the host or program on the way there closes connections at once, as sshd does beyond MaxStartups"
        in done.stderr
    )


def test_every_line_carries_its_nodes_name(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "all", WHO)
    assert sorted(done.stdout.decode().splitlines()) == [f"[train-{n}] 127.0.17.{n + 1}" for n in range(4)]
    assert done.returncode == 0
    assert done.stderr == b""


def test_lines_begin_with_numbers_where_that_is_asked_for(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.stop(3)
    done = loopback_cluster.run("ssh", "--node", "0,3", "--numbers", "echo here; echo there >&2")
    assert done.stdout == b"[Node 0] here\n"
    assert b"[Node 0] there\n" in done.stderr
    assert b"[Node 3] " in done.stderr
    assert b"1 of 2 failed: train-3 not reached: " in done.stderr


def test_failures_are_folded_and_the_exit_code_is_4(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "all", "--", "sh", "-c", f"test `{WHO}` = 127.0.17.1")
    assert done.stderr == b"3 of 4 failed: train-[1-3] exit 1\n"
    assert done.returncode == 4


def test_the_others_results_come_when_one_node_is_dead_and_one_is_silent(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.stop(1)
    loopback_cluster.stop(2)
    with socket.create_server(("127.0.17.3", loopback_cluster.port)):
        done = loopback_cluster.run("ssh", "--node", "all", "--connect-timeout", "2", "echo", "here")
    assert sorted(done.stdout.splitlines()) == [b"[train-0] here", b"[train-3] here"]
    assert b"2 of 4 failed:" in done.stderr
    assert b"train-1 not reached: connection refused" in done.stderr
    assert b"train-2 not reached: timeout (greeting)" in done.stderr
    assert done.stderr.endswith(b"\n  next: clusterctl status --cluster train\n")
    assert done.returncode == 4


def test_a_hanging_node_is_ended_at_the_timeout_and_the_others_are_shown(steady_cluster: LoopbackCluster) -> None:
    line = f"test `{WHO}` = 127.0.17.1 && sleep 300; echo here"
    done = steady_cluster.run("ssh", "--node", "0-1", "--timeout", "1.5", line)
    assert b"[train-1] here" in done.stdout
    assert b"1 of 2 failed: train-0 ended at --timeout" in done.stderr
    assert done.returncode == 4


def test_json_is_one_line_per_node_with_the_failure_in_it(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.stop(3)
    done = loopback_cluster.run("ssh", "--node", "0,3", "--json", "printf 'a\\377'; exit 3")
    rows = {row["node"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["train-0"]["exit_code"] == 3
    assert rows["train-0"]["stdout"] == "a�"
    assert rows["train-0"]["stdout_base64"] == "Yf8="
    assert rows["train-3"]["exit_code"] is None
    assert rows["train-3"]["error_class"] == "refused"
    assert done.returncode == 4


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        ("4", 3, "no node 4: train has nodes 0-3"),
        ("0,2-9", 3, "no node 9: train has nodes 0-3"),
        ("x", 2, "--node x: not a set of nodes"),
        ("", 2, "no node named"),
    ],
)
def test_a_node_that_is_not_there_is_named_with_those_that_are(
    steady_cluster: LoopbackCluster, wanted: str, code: int, message: str
) -> None:
    done = steady_cluster.run("ssh", "--node", wanted, "true")
    assert done.returncode == code
    assert message in done.stderr.decode()


def test_a_node_named_twice_is_asked_once(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "1,1-2,train-2", "echo", "x")
    assert sorted(done.stdout.splitlines()) == [b"[train-1] x", b"[train-2] x"]


def test_a_reader_that_goes_away_ends_it_quietly(steady_cluster: LoopbackCluster) -> None:
    client = subprocess.Popen(
        steady_cluster.command("ssh", "--node", "all", "yes"),
        env=steady_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert client.stdout is not None
    assert client.stdout.readline().endswith(b"] y\n")
    client.stdout.close()
    client.wait(timeout=20)
    assert client.stderr is not None
    assert client.stderr.read() == b""
    client.stderr.close()


def test_ctrl_c_ends_the_command_on_every_node(steady_cluster: LoopbackCluster) -> None:
    client = subprocess.Popen(
        steady_cluster.command("ssh", "--node", "all", "echo $$; exec sleep 300"),
        env=steady_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert client.stdout is not None
    pids = [int(client.stdout.readline().split()[1]) for _ in range(4)]
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=15)
    assert client.returncode == 130
    assert all(has_ended(pid) for pid in pids)


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["--gather"], ["  half a line", "[train-1] stopped before its end\n"]),
        (["--node", "all"], ["[train-1] half a line\n"]),
        (["--json"], ['"stdout": "half a line"', '"message": "train-1: stopped before its end"']),
    ],
)
@pytest.mark.parametrize("is_warm", [False, True])
def test_after_ctrl_c_all_that_came_is_shown_and_which_nodes_had_not_ended(
    steady_warm_cluster: LoopbackCluster, tmp_path: Path, flags: list[str], shown: list[str], is_warm: bool
) -> None:
    begun = tmp_path / "begun"
    words = f"printf ' a line'; {TAKEN}; touch {begun}; exec sleep 300"
    on_1 = f"set -- $SSH_CONNECTION; [ $3 = {address(1)} ] || exit 0; {words}"
    client = subprocess.Popen(
        steady_warm_cluster.command("ssh", *flags, f"printf half; {on_1}"),
        env={**steady_warm_cluster.environ, **(WARM if is_warm else {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert comes_true(begun.exists)
    client.send_signal(signal.SIGINT)
    output, _ = client.communicate(timeout=15)
    assert client.returncode == 130
    assert [words for words in shown if words not in output] == []


@pytest.mark.alone
def test_what_came_beside_something_else_is_not_left_lying_until_the_next_keepalive(
    steady_cluster: LoopbackCluster,
) -> None:
    """A short command's output comes while its watcher's channel is opened: a quarter of such runs waited 15 s."""
    for _ in range(12):
        began_at = time.monotonic()
        done = steady_cluster.run("ssh", "--node", "all", "echo", "here", stdin=b"given")
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - began_at < KEEPALIVE_S
