"""Private nodes behind Session Manager: one session to a node, and through it to the others, each with its own key."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.shared_session import opening, relay

from tests.integration.cli.kept_connections import await_warm
from tests.integration.cli.private_nodes import PrivateCluster, instance, made_private

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

EACH = ("--cold", "--json", "echo here")
REPLACED = "i-0000000000000000f"
PLANTED = "raise SystemExit(open({!r}, 'w').write('it ran'))\n"


@pytest.fixture
def private_cluster(loopback_cluster: LoopbackCluster, tmp_path: Path) -> Iterator[PrivateCluster]:
    with contextlib.closing(made_private(loopback_cluster, tmp_path / "programs")) as cluster:
        yield cluster


def test_all_nodes_are_reached_by_one_session(private_cluster: PrivateCluster) -> None:
    done = private_cluster.run("ssh", *EACH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b'"here\\n"') == 4
    assert private_cluster.sessions == [instance(0)]
    again = private_cluster.run("ssh", "--cold", "--node", "3", "echo $SSH_CONNECTION")
    assert again.stdout.split()[2] == private_cluster.nodes.inventory.nodes[3].private_ip.encode(), again.stderr
    assert private_cluster.sessions == [instance(0)], "the session is kept for the next command"


def test_logins_files_and_the_systems_ssh_go_by_the_same_session(
    private_cluster: PrivateCluster, tmp_path: Path
) -> None:
    login = private_cluster.run("ssh", "--node", "2", stdin=b"exit 5\n")
    assert login.returncode == 5, login.stderr
    (tmp_path / "file").write_text("content")
    copied = private_cluster.run("cp", str(tmp_path / "file"), "all:file")
    assert copied.returncode == 0, copied.stderr
    assert [(private_cluster.nodes.folder / f"node-{slot}" / "file").read_text() for slot in range(4)] == [
        "content"
    ] * 4
    config = private_cluster.run("ssh-config")
    (tmp_path / "config").write_bytes(config.stdout)
    direct = subprocess.run(
        ["ssh", "-F", str(tmp_path / "config"), "train-3", "echo by its name"],
        capture_output=True,
        timeout=30,
        env={**os.environ, **private_cluster.environ},
    )
    assert direct.stdout == b"by its name\n", direct.stderr
    assert private_cluster.sessions == [instance(0)]


def test_connections_that_are_kept_go_by_the_same_session(private_cluster: PrivateCluster) -> None:
    assert private_cluster.run("ssh", "true").returncode == 0
    await_warm(private_cluster.nodes)
    again = private_cluster.run("ssh", "true")
    assert again.returncode == 0, again.stderr
    assert private_cluster.sessions == [instance(0)]


def test_without_kept_connections_each_node_has_a_session_of_its_own(private_cluster: PrivateCluster) -> None:
    done = private_cluster.nodes.run("ssh", *EACH, environ={**private_cluster.environ, "CLUSTERCTL_WARM": "no"})
    assert done.returncode == 0, done.stderr
    assert sorted(private_cluster.sessions) == [instance(slot) for slot in range(4)]


@pytest.mark.parametrize("is_open_before", [False, True])
def test_where_slot_0_is_silent_another_node_leads(private_cluster: PrivateCluster, is_open_before: bool) -> None:
    if is_open_before:
        assert private_cluster.run("ssh", *EACH).returncode == 0
        (private_cluster.shared_folder / relay.HEARD).unlink()
    private_cluster.signal(0, signal.SIGSTOP)
    done = private_cluster.run("ssh", "--node", "1-3", *EACH)
    assert done.returncode == 0, done.stderr
    assert private_cluster.sessions == [instance(0), instance(1)]


def test_a_login_outlives_a_short_silence_of_slot_0(private_cluster: PrivateCluster) -> None:
    nodes = private_cluster.nodes
    environ = {**nodes.environ, **private_cluster.environ}
    login = subprocess.Popen(
        nodes.command("ssh", "--node", "2"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    )
    assert login.stdin is not None
    assert login.stdout is not None
    with login:
        login.stdin.write(b"echo begun\n")
        login.stdin.flush()
        assert login.stdout.readline() == b"begun\n"
        (control,) = private_cluster.controls
        (private_cluster.shared_folder / relay.HEARD).unlink(missing_ok=True)
        private_cluster.signal(0, signal.SIGSTOP)
        done = private_cluster.run("ssh", "--node", "1-3", *EACH)
        assert done.returncode == 0, done.stderr
        assert private_cluster.sessions == [instance(0), instance(1)], "another node leads new connections"
        assert control in private_cluster.controls, "the session that is in use is not ended"
        private_cluster.signal(0, signal.SIGCONT)
        output, _ = login.communicate(b"echo still here; exit 5\n", timeout=30)
    assert (output, login.returncode) == (b"still here\n", 5)


def test_sessions_that_were_passed_over_are_few(private_cluster: PrivateCluster, tmp_path: Path) -> None:
    private_cluster.shared_folder.mkdir(parents=True, mode=0o700)
    with contextlib.ExitStack() as held, contextlib.chdir(private_cluster.shared_folder):
        for number in range(opening.MOST_PASSED_OVER):
            listening = held.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(f"control-{number}")
            listening.listen()
            os.utime(f"control-{number}", (0, 0))
        assert private_cluster.run("ssh", "--node", "3", *EACH).returncode == 0
    assert private_cluster.sessions == [instance(3)]
    assert "earlier sessions are in use still" in private_cluster.failure["reason"]
    for file in [relay.FAILED, *private_cluster.controls]:
        os.utime(private_cluster.shared_folder / file, (0, 0))
    assert private_cluster.run("ssh", "--node", "3", *EACH).returncode == 0
    assert private_cluster.sessions == [instance(3), instance(0)]
    assert len(private_cluster.controls) == 1, "sockets at which nobody listens are removed"


def test_nothing_in_the_working_folder_is_run(private_cluster: PrivateCluster, tmp_path: Path) -> None:
    config, planted, ran = tmp_path / "config", tmp_path / "planted", tmp_path / "ran"
    config.write_bytes(private_cluster.run("ssh-config").stdout)
    (planted / "clusterctl").mkdir(parents=True)
    for file in ("clusterctl/__init__.py", "signal.py", "json.py"):
        (planted / file).write_text(PLANTED.format(str(ran)))
    done = subprocess.run(
        ["ssh", "-F", str(config), "train-3", "echo here"],
        cwd=planted,
        capture_output=True,
        timeout=40,
        env={**os.environ, **private_cluster.environ},
    )
    assert done.stdout == b"here\n", done.stderr
    assert not ran.exists()
    assert private_cluster.sessions == [instance(0)]


@pytest.mark.parametrize("trouble", ["no forwarding", "another host key"])
def test_a_slot_0_that_may_not_lead_does_not(private_cluster: PrivateCluster, trouble: str) -> None:
    if trouble == "no forwarding":
        private_cluster.nodes.stop(0)
        private_cluster.nodes.start(0, more="AllowTcpForwarding no\n")
    else:
        private_cluster.nodes.change_host_key(0)
    done = private_cluster.run("ssh", "--node", "1-3", *EACH)
    assert done.returncode == 0, done.stderr
    assert private_cluster.sessions == [instance(0), instance(1)]


def test_where_nobody_leads_each_node_has_a_session_of_its_own(private_cluster: PrivateCluster) -> None:
    for slot in (0, 1):
        private_cluster.nodes.stop(slot)
    done = private_cluster.run("ssh", "--node", "2-3", *EACH)
    assert done.returncode == 0, done.stderr
    assert private_cluster.sessions[:2] == [instance(0), instance(1)], "they are tried once for all nodes"
    assert sorted(private_cluster.sessions[2:]) == [instance(2), instance(3)]


def test_nodes_that_may_not_lead_are_tried_ever_more_seldom(private_cluster: PrivateCluster) -> None:
    for slot in (0, 1):
        private_cluster.nodes.stop(slot)
        private_cluster.nodes.start(slot, more="AllowTcpForwarding no\n")
    pauses = []
    for _ in range(3):
        assert private_cluster.run("ssh", "--node", "3", *EACH).returncode == 0
        pauses.append(private_cluster.failure["pause_s"])
        tried_at = (private_cluster.shared_folder / relay.FAILED).stat().st_mtime - relay.FAILED_S - 1
        os.utime(private_cluster.shared_folder / relay.FAILED, (tried_at, tried_at))
    assert pauses == [15, 30, 30], "the third command begins in the pause"
    again = [instance(0), instance(1), instance(3)]
    assert private_cluster.sessions == [*again, *again, instance(3)]
    assert "AllowTcpForwarding no" in private_cluster.failure["reason"]
    assert private_cluster.controls == []


def test_silent_nodes_leave_no_process_behind(private_cluster: PrivateCluster) -> None:
    for slot in (0, 1):
        private_cluster.signal(slot, signal.SIGSTOP)
    done = private_cluster.run("ssh", "--node", "2-3", *EACH)
    assert done.returncode == 0, done.stderr
    assert sorted(private_cluster.sessions[2:]) == [instance(2), instance(3)]
    assert private_cluster.controls == []
    assert not _processes_with(str(private_cluster.nodes.home).encode(), b"control-")


def test_a_lock_that_is_not_let_go_is_not_waited_for_for_ever(private_cluster: PrivateCluster) -> None:
    private_cluster.shared_folder.mkdir(parents=True, mode=0o700)
    with (private_cluster.shared_folder / relay.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = private_cluster.run("ssh", "--node", "3", *EACH)
    assert done.returncode == 0, done.stderr
    assert private_cluster.sessions == [instance(3)]


def test_a_wrong_host_key_behind_slot_0_is_refused(private_cluster: PrivateCluster) -> None:
    private_cluster.nodes.change_host_key(2)
    done = private_cluster.run("ssh", "--cold", "echo here")
    assert done.returncode == 4
    assert b"[train-2] (127.0.17.3" in done.stderr
    assert sorted(done.stdout.split()) == sorted([b"[train-0]", b"[train-1]", b"[train-3]", *[b"here"] * 3])
    assert private_cluster.sessions == [instance(0)]


def test_after_slot_0_was_replaced_the_new_machine_leads(private_cluster: PrivateCluster) -> None:
    assert private_cluster.run("ssh", *EACH).returncode == 0
    nodes = private_cluster.nodes
    nodes.change_host_key(0)
    key = (nodes.folder / "node-0" / "host_key.pub").read_text().strip()
    first, *others = nodes.inventory.nodes
    replaced = replace(first, instance_id=REPLACED, host_public_key=key)
    nodes.write_inventory(replace(nodes.inventory, nodes=(replaced, *others)))
    private_cluster.lead_to(0, REPLACED)
    done = private_cluster.run("ssh", *EACH)
    assert done.returncode == 0, done.stderr
    assert private_cluster.sessions == [instance(0), REPLACED]


def _processes_with(*parts: bytes) -> list[bytes]:
    """The command lines that have all of these."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = file.read_bytes()
            if all(part in line for part in parts):
                found.append(line)
    return found
