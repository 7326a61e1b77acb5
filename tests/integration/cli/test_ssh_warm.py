"""Connections kept between commands, against real sshd processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.fanout.node_task import WARM_ANSWER_S

from tests.integration.cli.kept_connections import PORT, WARM, await_warm, ports
from tests.integration.cli.waiting import comes_true
from tests.integration.refused_calls import without

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster


def test_the_second_command_finds_the_connections_of_the_first(warm_cluster: LoopbackCluster) -> None:
    first = ports(warm_cluster)
    await_warm(warm_cluster)
    assert ports(warm_cluster) == first
    assert not set(ports(warm_cluster, "--cold")) & set(first)
    data = os.urandom(300_000)
    assert warm_cluster.run("ssh", "--node", "2", "cat", stdin=data).stdout == data
    done = warm_cluster.run("ssh", "--node", "1", "--json", "echo out; echo err >&2; exit 7")
    assert (done.returncode, b'"stdout": "out\\n", "stderr": "err\\n"' in done.stdout) == (7, True)


def test_a_home_that_keeps_nothing_leaves_the_exit_code_as_it_is(warm_cluster: LoopbackCluster) -> None:
    (warm_cluster.home / "warm").write_text("no folder")
    done = warm_cluster.run("ssh", "--node", "0", "exit 3")
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize(("call", "why"), [("bind", "Operation not supported"), ("flock", "No locks available")])
def test_a_home_that_can_have_no_socket_is_named_and_the_command_goes_on(
    warm_cluster: LoopbackCluster, call: str, why: str
) -> None:
    done = subprocess.run(
        without(call, warm_cluster.command("ssh", "--node", "0", "exit 3")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        env={**warm_cluster.environ, **WARM},
    )
    assert done.returncode == 3
    folder = warm_cluster.home / "warm"
    message = f"clusterctl: connections are not kept: that takes a socket and a lock in {folder} ({why})"
    assert message.encode() in done.stderr
    assert not (folder / "socket").exists()


def test_more_nodes_than_descriptors_are_usual_are_kept(warm_cluster: LoopbackCluster) -> None:
    """The process has descriptors above 1023, and as many of them as its limit allows."""
    nodes = [
        replace(node, slot=slot, rank=slot, name=f"train-{slot}")
        for slot, node in enumerate(warm_cluster.inventory.nodes * 8)
    ]
    warm_cluster.write_inventory(replace(warm_cluster.inventory, nodes=tuple(nodes)))
    few = "import os, resource, sys; most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; "
    few += "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)); null = os.open(os.devnull, os.O_RDONLY); "
    few += "[os.dup2(null, number) for number in range(3, 1060)]; "
    few += "resource.setrlimit(resource.RLIMIT_NOFILE, (1070, most)); os.execv(sys.argv[1], sys.argv[1:])"
    first = subprocess.run(
        [sys.executable, "-c", few, *warm_cluster.command("ssh", PORT)],
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    assert first.returncode == 0, first.stderr
    await_warm(warm_cluster)
    assert ports(warm_cluster) == sorted(first.stdout.decode().splitlines())


def test_another_instance_in_a_slot_is_connected_anew(warm_cluster: LoopbackCluster) -> None:
    first = ports(warm_cluster)
    await_warm(warm_cluster)
    nodes = list(warm_cluster.inventory.nodes)
    nodes[2] = replace(nodes[2], instance_id="i-another")
    warm_cluster.write_inventory(replace(warm_cluster.inventory, nodes=tuple(nodes)))
    second = ports(warm_cluster)
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False, True]


def test_a_node_that_was_restarted_is_reached_at_once(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = kept_session(warm_cluster)
    os.kill(session, signal.SIGKILL)
    done = warm_cluster.run("ssh", "echo here")
    assert (done.returncode, done.stdout.count(b"here")) == (0, 4)


def test_a_node_that_is_slow_to_start_a_command_starts_it_once(warm_cluster: LoopbackCluster, tmp_path: Path) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = kept_session(warm_cluster)
    os.kill(session, signal.SIGSTOP)
    try:
        client = subprocess.Popen(
            warm_cluster.command("ssh", "--node", "1", f"echo once >> {tmp_path / 'runs'}"),
            env=warm_cluster.environ,
            stdin=subprocess.DEVNULL,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(WARM_ANSWER_S + 2)  # it has the command, so that another connection would be a second start
    finally:
        os.kill(session, signal.SIGCONT)
    assert client.wait(15) == 0
    assert (tmp_path / "runs").read_text() == "once\n"


def test_a_connection_that_breaks_once_the_node_has_the_command_is_not_tried_again(
    warm_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = kept_session(warm_cluster)
    os.kill(session, signal.SIGSTOP)
    client = subprocess.Popen(
        warm_cluster.command("ssh", "--node", "1", f"echo again >> {tmp_path / 'runs'}"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        client.wait(1.5)
    os.kill(session, signal.SIGKILL)
    _, stderr = client.communicate(timeout=15)
    assert (client.returncode, b"train-1 broke" in stderr) == (255, True)
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_ends_what_runs_on_kept_connections(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    client = subprocess.Popen(
        warm_cluster.command("ssh", "echo $$; exec sleep 300"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert client.stdout is not None
    pids = [int(client.stdout.readline().split()[1]) for _ in range(4)]
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=15)
    assert client.returncode == 130
    assert comes_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_client_that_is_killed_takes_its_commands_along(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    client = subprocess.Popen(
        warm_cluster.command("ssh", "--node", "3", "echo $$; exec sleep 300"),
        env=warm_cluster.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    client.kill()
    client.communicate(timeout=10)
    assert comes_true(lambda: not Path(f"/proc/{pid}").exists())


def kept_session(cluster: LoopbackCluster) -> int:
    """The server's process behind node 1's kept connection: two commands in a row came by it, and it is idle.

    On a busy machine a command does not wait for the process that keeps connections, and opens a connection of its own.
    The channel of the next command is being opened then; until it is open, that command does the same.
    """
    seen: list[int] = []

    def is_the_same_again() -> bool:
        seen.append(int(cluster.run("ssh", "--node", "1", "echo $PPID").stdout))
        return seen[-2:-1] == seen[-1:]

    assert comes_true(is_the_same_again)
    assert comes_true(lambda: is_idle(seen[-1]))
    return seen[-1]


def is_idle(server: int) -> bool:
    """It has read all that has come for it, and waits for more."""
    process = Path(f"/proc/{server}")
    its_own = {os.readlink(link) for link in (process / "fd").iterdir()}
    sockets = [line.split() for line in (process / "net" / "tcp").read_text().splitlines()[1:]]
    unread = [row[4].partition(":")[2] for row in sockets if f"socket:[{row[9]}]" in its_own]  # rx_queue, by inode
    state = (process / "stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and set(unread) == {"00000000"}
