"""Connections kept between commands, against real sshd processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.many.node_task import WARM_ANSWER_S

from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

PORT = "set -- $SSH_CONNECTION; echo $2"


@pytest.fixture
def warm_cluster(loopback_cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackCluster]:
    monkeypatch.setenv("CLUSTERCTL_WARM", "yes")
    yield loopback_cluster
    folder = loopback_cluster.home / "warm"
    if folder.is_dir():
        lock = (folder / "lock").open("w") if (folder / "lock").exists() else None
        (folder / "socket").unlink(missing_ok=True)
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # returns when the process has ended
            lock.close()


def ports(cluster: LoopbackCluster, *flags: str) -> list[str]:
    """The client's port of each node's connection."""
    done = cluster.run("ssh", *flags, PORT)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.decode().splitlines())


def test_the_second_command_finds_the_connections_of_the_first(warm_cluster: LoopbackCluster) -> None:
    first = ports(warm_cluster)
    await_warm(warm_cluster)
    assert ports(warm_cluster) == first
    assert not set(ports(warm_cluster, "--cold")) & set(first)
    data = os.urandom(300_000)
    assert warm_cluster.run("ssh", "--node", "2", "cat", stdin=data).stdout == data
    done = warm_cluster.run("ssh", "--node", "1", "--json", "echo out; echo err >&2; exit 7")
    assert (done.returncode, b'"stdout": "out\\n", "stderr": "err\\n"' in done.stdout) == (7, True)


def test_more_nodes_than_descriptors_are_usual_are_kept(warm_cluster: LoopbackCluster) -> None:
    """The process has numbers above 1023, and as many connections as it may."""
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


def test_only_its_owner_can_speak_to_the_process(warm_cluster: LoopbackCluster) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    folder = warm_cluster.home / "warm"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "socket").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir() if path.stat().st_size] == []


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
    session = int(warm_cluster.run("ssh", "--node", "1", "echo $PPID").stdout)
    os.kill(session, signal.SIGKILL)
    done = warm_cluster.run("ssh", "echo here")
    assert (done.returncode, done.stdout.count(b"here")) == (0, 4)


def test_a_node_that_is_slow_to_start_a_command_starts_it_once(warm_cluster: LoopbackCluster, tmp_path: Path) -> None:
    ports(warm_cluster)
    await_warm(warm_cluster)
    session = int(warm_cluster.run("ssh", "--node", "1", "echo $PPID").stdout)
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


def test_the_process_ends_with_its_folder_and_shows_no_command(warm_cluster: LoopbackCluster) -> None:
    warm_cluster.run("ssh", "--env", "TOKEN=hunter2", "true")
    await_warm(warm_cluster)
    assert named(b"clusterctl: keeps connections")
    assert not named(b"hunter2")
    lock = (warm_cluster.home / "warm" / "lock").open("w")
    shutil.rmtree(warm_cluster.home / "warm")
    assert comes_true(lambda: can_lock(lock))
    lock.close()


def named(words: bytes) -> list[str]:
    """Processes with these words in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if words in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


def await_warm(cluster: LoopbackCluster) -> None:
    assert comes_true((cluster.home / "warm" / "socket").exists)


def can_lock(file: object) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[arg-type]
    except OSError:
        return False
    return True
