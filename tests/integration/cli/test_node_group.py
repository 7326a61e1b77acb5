"""`clusterctl.nodes` in a Python program: Fabric's groups and connections, against real sshd processes."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import clusterctl
import pytest
from clusterctl.node_group.results import NodesFailed
from clusterctl_infra.errors import NotReached, UsageError
from fabric.exceptions import GroupException
from invoke.exceptions import CommandTimedOut, UnexpectedExit

from tests.integration.cli.conftest import LoopbackCluster, address, made_cluster
from tests.integration.cli.waiting import comes_true, has_ended

SUDO = '#!/bin/sh\n[ "$1 $2" = "-n --" ] && shift 2\nAS_ROOT=yes exec "$@"\n'
ALONE = {"hide": True, "in_stream": False}
"""For a single connection: Fabric shows the output, and reads this process's stdin, where a group does not."""
WHO = "echo $SSH_CONNECTION | cut -d' ' -f3"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """Four nodes for all tests that leave them as they are; their sudo says that it was asked."""
    folder = tmp_path_factory.mktemp("fleet")
    with made_cluster(folder / "nodes", folder / "home") as cluster:
        for slot in range(4):
            sudo = cluster.folder / f"node-{slot}" / "bin" / "sudo"
            sudo.parent.mkdir()
            sudo.write_text(SUDO)
            sudo.chmod(0o755)
        yield cluster


@pytest.fixture
def train(fleet: LoopbackCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[clusterctl.NodeGroup]:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(fleet.home))
    with clusterctl.nodes("train") as group:
        yield group


def test_every_node_has_fabrics_result_and_its_lines_carry_its_name(
    train: clusterctl.NodeGroup, capsys: pytest.CaptureFixture[str]
) -> None:
    results = train.run(f"{WHO}; echo trouble >&2")
    assert [results[train[slot]].stdout for slot in range(4)] == [f"{address(slot)}\n" for slot in range(4)]
    assert results[train[2]].stderr == "trouble\n"
    assert (results[train[2]].ok, results[train[2]].connection) == (True, train[2])
    shown = capsys.readouterr()
    assert sorted(shown.out.splitlines()) == [f"[train-{slot}] {address(slot)}" for slot in range(4)]
    assert sorted(shown.err.splitlines()) == [f"[train-{slot}] trouble" for slot in range(4)]


def test_what_is_hidden_is_in_the_results_all_the_same(
    train: clusterctl.NodeGroup, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = io.StringIO()
    results = train[0:2].run(
        "echo out; echo err >&2", hide="stdout", err_stream=kept, echo=True, echo_format="> {command}"
    )
    assert [(each.stdout, each.stderr) for each in results.values()] == [("out\n", "err\n")] * 2
    assert capsys.readouterr() == ("> echo out; echo err >&2\n", "")
    assert sorted(kept.getvalue().splitlines()) == ["[train-0] err", "[train-1] err"]


def test_a_failed_command_raises_with_every_nodes_result(train: clusterctl.NodeGroup) -> None:
    line = f"test `{WHO}` != {address(2)} || exit 7"
    with pytest.raises(GroupException) as caught:
        train.run(line, hide=True)
    assert str(caught.value) == "1 of 4 failed: train-2 exit 7"
    assert list(caught.value.result.failed) == [train[2]]
    assert isinstance(caught.value.result[train[2]], UnexpectedExit)
    assert len(caught.value.result.succeeded) == 3
    results = train.run(line, hide=True, warn=True)
    assert [results[train[slot]].exited for slot in range(4)] == [0, 0, 7, 0]
    assert train[1:2].run("kill -9 $$", hide=True, warn=True)[train[1]].exited == 128 + signal.SIGKILL


def test_text_that_is_none_and_much_output_come_whole(train: clusterctl.NodeGroup) -> None:
    shown = io.StringIO()
    result = train[0:1].run(r"printf 'gr\303\274\303\237e \377 \360\237\232\200'", out_stream=shown)[train[0]]
    assert result.stdout == "grüße � 🚀"
    assert shown.getvalue() == "[train-0] grüße � 🚀\n"
    size = 20_000_000
    results = train[0:2].run(f"head -c {size} /dev/zero | tr '\\0' x", hide=True)
    assert [len(each.stdout) for each in results.values()] == [size, size]


def test_variables_and_input_reach_every_node(train: clusterctl.NodeGroup, tmp_path: Path) -> None:
    results = train.run('printf %s "$A"; cat', env={"A": "x y'z$", "B": 3}, in_stream=io.StringIO("é\n"), hide=True)
    assert {each.stdout for each in results.values()} == {"x y'z$é\n"}
    source = tmp_path / "input"
    source.write_bytes(b"0123456789" * 100_000)
    with source.open("rb") as file:
        assert {each.stdout for each in train.run("wc -c", in_stream=file, hide=True).values()} == {"1000000\n"}
    assert {each.stdout for each in train.run("cat; echo end", hide=True).values()} == {"end\n"}


def test_sudo_runs_as_root_with_the_variables(train: clusterctl.NodeGroup) -> None:
    assert {each.stdout for each in train.run("echo ${AS_ROOT-no}", hide=True).values()} == {"no\n"}
    results = train.sudo("echo $AS_ROOT $A", env={"A": "b c"}, hide=True)
    assert {each.stdout for each in results.values()} == {"yes b c\n"}


def test_a_command_that_takes_too_long_is_ended_and_its_output_kept(train: clusterctl.NodeGroup) -> None:
    with pytest.raises(NodesFailed) as caught:
        train[0:2].run("echo $$; exec sleep 300", timeout=5, hide=True, warn=True)
    assert str(caught.value) == "2 of 2 failed: train-[0-1] ended after 5 s"
    for error in caught.value.result.values():
        assert isinstance(error, CommandTimedOut)
        assert has_ended(int(error.result.stdout))


def test_ctrl_c_ends_the_command_on_every_node(fleet: LoopbackCluster) -> None:
    program = "import clusterctl; clusterctl.nodes('train').run('echo $$; exec sleep 300')"
    with subprocess.Popen(
        [sys.executable, "-c", program], env=fleet.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        pids = [int(client.stdout.readline().split()[1]) for _ in range(4)]
        client.send_signal(signal.SIGINT)
        _, stderr = client.communicate(timeout=20)
    assert stderr.endswith(b"KeyboardInterrupt\n")
    assert all(has_ended(pid) for pid in pids)


def test_files_go_to_every_node_and_come_back(
    train: clusterctl.NodeGroup, fleet: LoopbackCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "weights.bin"
    source.write_bytes(os.urandom(300_000))
    source.chmod(0o640)
    results = train.put(source)
    assert {(each.local, each.remote) for each in results.values()} == {(str(source), "./weights.bin")}
    for slot in range(4):
        there = fleet.folder / f"node-{slot}" / "weights.bin"
        assert (there.read_bytes(), there.stat().st_mode & 0o777) == (source.read_bytes(), 0o640)
    train[0:2].put(io.BytesIO(b"from memory"), "note.txt")
    assert (fleet.folder / "node-1" / "note.txt").read_bytes() == b"from memory"

    monkeypatch.chdir(tmp_path)
    results = train.get("weights.bin")
    assert results[train[3]].local == str(tmp_path / address(3) / "weights.bin")
    assert (tmp_path / address(3) / "weights.bin").read_bytes() == source.read_bytes()
    train[0:2].get("note.txt", local="notes/{name}-{basename}")
    assert sorted(path.name for path in Path("notes").iterdir()) == ["train-0-note.txt", "train-1-note.txt"]
    with pytest.raises(UsageError, match="names one place for several"):
        train.get("note.txt", local="note.txt")
    with pytest.raises(NodesFailed) as caught:
        train.get("note.txt")
    assert sorted(each.node.slot for each in caught.value.result.failed) == [2, 3]


def test_one_connection_is_fabrics_own(train: clusterctl.NodeGroup, fleet: LoopbackCluster, tmp_path: Path) -> None:
    node = train[1]
    assert node.run(WHO, **ALONE).stdout == f"{address(1)}\n"
    assert node.run("test -t 0 && echo terminal", pty=True, **ALONE).stdout.strip() == "terminal"
    source = tmp_path / "a.txt"
    source.write_text("a")
    node.put(str(source), "b.txt")
    assert (fleet.folder / "node-1" / "b.txt").read_text() == "a"
    node.get("b.txt", local=f"{tmp_path}/{{host}}.txt")
    assert (tmp_path / f"{address(1)}.txt").read_text() == "a"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        node.forward_local(port, remote_port=fleet.port, remote_host=address(3)),
        socket.socket() as through,
    ):
        through.settimeout(30)
        assert comes_true(lambda: through.connect_ex(("127.0.0.1", port)) == 0)
        with through.makefile("rb") as received:
            assert received.readline().startswith(b"SSH-2.0-")
            through.shutdown(socket.SHUT_WR)
            received.read()  # closed with something unread, the tunnel would see a reset connection
    with socket.create_server(("127.0.0.1", 0)) as here:
        here.settimeout(30)
        with (
            node.forward_remote(port, local_port=here.getsockname()[1], local_host="127.0.0.1"),
            socket.create_connection(("127.0.0.1", port), timeout=30) as there,
            here.accept()[0] as arrived,
        ):
            there.sendall(b"from the node")
            there.shutdown(socket.SHUT_WR)
            with arrived.makefile("rb") as received:
                assert received.read() == b"from the node"
    node.close()
    assert not node.is_connected
    assert node.run("echo again", **ALONE).stdout == "again\n"


def test_another_machine_at_the_address_is_refused(
    loopback_cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  User nobody\n  Port 1\n  StrictHostKeyChecking no\n")
    loopback_cluster.change_host_key(2)
    train = clusterctl.nodes("train")
    with pytest.raises(NodesFailed) as caught:
        train.run("touch here", hide=True, warn=True)
    assert list(caught.value.result.failed) == [train[2]]
    refused = caught.value.result[train[2]]
    assert isinstance(refused, NotReached)
    assert "shows the host key SHA256:" in refused.message
    with pytest.raises(NotReached, match="shows the host key SHA256:"):
        train[2].run("touch here", **ALONE)
    with pytest.raises(NotReached, match="shows the host key SHA256:"):
        train[2].put(io.StringIO("x"), "here")
    assert not (loopback_cluster.folder / "node-2" / "here").exists()
    assert (loopback_cluster.folder / "node-1" / "here").exists()


def test_one_node_that_is_missing_leaves_the_others_and_their_slots_alone(loopback_cluster: LoopbackCluster) -> None:
    inventory = loopback_cluster.inventory
    loopback_cluster.stop(0)
    train = clusterctl.nodes("train")
    with pytest.raises(NodesFailed, match=r"^1 of 4 failed: train-0 \(.*refuses connections") as caught:
        train.run(WHO, hide=True)
    assert [each.stdout for each in caught.value.result.succeeded.values()] == [f"{address(n)}\n" for n in (1, 2, 3)]
    loopback_cluster.write_inventory(replace(inventory, nodes=inventory.nodes[2:]))
    rest = clusterctl.nodes("train")
    assert rest[3].run(WHO, **ALONE).stdout == f"{address(3)}\n"
    with pytest.raises(IndexError, match="no slot 0 in this group: it has 2-3"):
        rest[0]
    rest[3].close()


def test_the_proxy_command_is_the_way_for_groups_and_connections(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    used = tmp_path / "used"
    line = f'echo $0 >> {used}; exec {sys.executable} -c "$2" $0 $1'
    pipe = (
        "import os,socket,sys,threading\n"
        "s=socket.create_connection((sys.argv[1],int(sys.argv[2])))\n"
        "def up():\n"
        " while d:=os.read(0,65536): s.sendall(d)\n"
        " s.shutdown(1)\n"
        "threading.Thread(target=up,daemon=True).start()\n"
        "while d:=s.recv(65536): os.write(1,d)"
    )
    loopback_cluster.by_proxy("sh", "-c", line, "{host}", "{port}", pipe)
    with clusterctl.nodes("train", node="0-1") as pair:
        assert [each.stdout for each in pair.run("echo x", hide=True).values()] == ["x\n", "x\n"]
        assert sorted(used.read_text().split()) == [address(0), address(1)]
        assert pair[1].run("echo y", **ALONE).stdout == "y\n"
        assert used.read_text().split()[2:] == [address(1)]
        pair.put(io.StringIO("through"), "by-proxy")
    assert (loopback_cluster.folder / "node-1" / "by-proxy").read_text() == "through"
