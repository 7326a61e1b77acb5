"""`clusterctl logs` over real sshd: merged by time, and followed over a lost connection."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.rehearsed import wait_until

STILL_S = 0.5


def children(pid: int) -> list[int]:
    """The living children of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def cut(cluster: LoopbackCluster, slot: int) -> None:
    """The node ends its connections and takes no new ones."""
    sessions = children(cluster.servers[slot].pid)
    cluster.stop(slot)
    for pid in sessions:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def following(cluster: LoopbackCluster, *arguments: str) -> Iterator[list[str]]:
    """`clusterctl logs -f …` while it runs; the list grows with its lines."""
    process = subprocess.Popen(
        cluster.command("logs", "-f", *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines: list[str] = []

    def read() -> None:
        for line in process.stdout or ():
            lines.append(line.rstrip("\n"))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield lines
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=10)
        reader.join(timeout=5)
        if process.stdout is not None:
            process.stdout.close()


def test_files_of_several_nodes_are_merged_by_time(loopback_cluster: LoopbackCluster) -> None:
    log = loopback_cluster.folder / "train.log"
    log.write_text("2026-11-21T10:30:15Z one\n2026-11-21T10:30:17Z three\n  its second line\n")
    other = loopback_cluster.folder / "other.log"
    other.write_text("2026-11-21 10:30:16,500 two\n")
    done = loopback_cluster.run("logs", "--node", "0,2", str(log), str(other), "/nowhere")
    lines = [line for line in done.stdout.decode().splitlines() if "[Node 0]" in line]
    assert [line.rsplit("] ", 1)[1] for line in lines] == [
        "one",
        "two",
        "three",
        "  its second line",
    ]
    assert len(done.stdout.decode().splitlines()) == 8
    assert "[train-2] /nowhere is not there" in done.stderr.decode()
    assert done.returncode == 4


def test_following_survives_a_lost_connection_without_losing_or_doubling_a_line(
    loopback_cluster: LoopbackCluster,
) -> None:
    log = loopback_cluster.folder / "train.log"
    log.write_text("before\n")

    def write(*words: str) -> None:
        with log.open("a") as file:
            file.write("".join(f"{word}\n" for word in words))

    with following(loopback_cluster, "--node", "0", str(log)) as lines:

        def seen() -> list[str]:
            return [line.rsplit("] ", 1)[1] for line in lines if line.startswith("[Node 0] ")]

        wait_until(lambda: seen() == ["before"], what="the last lines came", timeout_s=20)
        write("first", "second")
        wait_until(lambda: len(seen()) == 3, what="new lines came", timeout_s=30)
        cut(loopback_cluster, 0)
        write("while away")
        log.rename(log.with_name("train.log.1"))
        write("after rotation")
        wait_until(lambda: any("trying again" in line for line in lines), what="the loss was reported", timeout_s=20)
        loopback_cluster.start(0)
        wait_until(lambda: "after rotation" in seen(), what="the way back was found", timeout_s=30)
        write("last")
        wait_until(lambda: "last" in seen(), what="it goes on", timeout_s=30)
        assert seen() == ["before", "first", "second", "while away", "after rotation", "last"]


def test_a_person_who_does_not_read_on_holds_the_nodes_up_rather_than_fill_this_computers_memory(
    loopback_cluster: LoopbackCluster,
) -> None:
    """As a pager does that shows its first page."""
    log = loopback_cluster.folder / "train.log"
    log.write_text("")
    with subprocess.Popen(
        loopback_cluster.command("logs", "-f", "--node", "0", str(log)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=loopback_cluster.environ,
    ) as process:
        try:
            wait_until(lambda: read_bytes(log) == 0, what="it is followed", timeout_s=20)
            lines = 100_000
            log.write_text("x" * 99 + "\n" + ("x" * 99 + "\n") * (lines - 1))
            at = [-2, -1]

            def stands_still() -> bool:
                time.sleep(STILL_S)  # the interval that is looked at, not a wait
                at.append(read_bytes(log) or 0)
                return 0 < at[-1] == at[-2] == at[-3]

            wait_until(stands_still, what="the reader there stands still", timeout_s=60)
            assert at[-1] < lines * 100 / 2
            assert process.stdout is not None
            for _ in range(lines // 3):
                assert process.stdout.readline().endswith(b"x\n")
            wait_until(lambda: (read_bytes(log) or 0) > at[-1], what="it reads on as the person does", timeout_s=20)
        finally:
            process.kill()


def read_bytes(path: Path) -> int | None:
    """How far the reader on the node has read a file; None while none has it open."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if link.readlink() == path:
                info = (link.parent.parent / "fdinfo" / link.name).read_text()
                return int(info.split()[1])
    return None


def without_sudo(cluster: LoopbackCluster, slot: int, name: str, text: str) -> None:
    """The slot's node has this program, and the reader runs with its own PATH there."""
    programs = cluster.folder / f"node-{slot}" / "bin"
    programs.mkdir(exist_ok=True)
    for program, words in (("sudo", "exit 1"), (name, text)):
        (programs / program).write_text(f"#!/bin/sh\n{words}\n")
        (programs / program).chmod(0o755)


def test_a_log_that_hangs_is_named_and_the_others_are_shown(loopback_cluster: LoopbackCluster) -> None:
    """A pipe that nobody writes to holds its reader as a file system that hangs does. On one node the login hangs."""
    log, hanging = loopback_cluster.folder / "train.log", loopback_cluster.folder / "hangs.log"
    log.write_text("one\n")
    os.mkfifo(hanging)
    without_sudo(loopback_cluster, 2, "python3", "exec sleep 300")
    done = loopback_cluster.run("logs", "--node", "0-2", "--timeout", "3s", str(log), str(hanging))
    # The lines are of one instant: which comes first depends on how late each node's clock was heard.
    assert sorted(line[:8] for line in done.stdout.decode().splitlines()) == ["[Node 0]", "[Node 1]"]
    stderr = done.stderr.decode()
    assert f"[train-1] {hanging} gave nothing for 1.5 s; does its file system hang?" in stderr
    assert "1 of 3 failed: train-2 ended at --timeout" in stderr
    assert done.returncode == 4


def test_following_ends_when_no_node_can_ever_have_a_line(loopback_cluster: LoopbackCluster) -> None:
    for slot in range(4):
        without_sudo(loopback_cluster, slot, "journalctl", "echo no journal is kept on this machine >&2; exit 1")
    done = loopback_cluster.run("logs", "-f", "system")
    lines = done.stderr.decode().splitlines()
    assert sorted(lines[:-1]) == [f"[train-{slot}] no journal is kept on this machine" for slot in range(4)]
    assert lines[-1] == "nothing is left to follow: no node can send lines of system"
    assert done.returncode == 4


def test_only_lines_that_match_are_sent(loopback_cluster: LoopbackCluster) -> None:
    log = loopback_cluster.folder / "train.log"
    log.write_text("loss 1\nother\nloss 2\n")
    loopback_cluster.stop(1)
    done = loopback_cluster.run("logs", "--node", "0-1", "--grep", "^loss", str(log))
    assert [line[-6:] for line in done.stdout.decode().splitlines()] == ["loss 1", "loss 2"]
    assert "train-1 not reached" in done.stderr.decode()
    assert "  next: clusterctl status --cluster train" in done.stderr.decode()
    assert done.returncode == 4
    done = loopback_cluster.run("logs", "--node", "0-1", "--json", "--grep", "^loss", str(log))
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [row.get("line") for row in rows] == ["loss 1", "loss 2", None]
    assert (rows[2]["node"], rows[2]["rank"], rows[2]["error_class"]) == ("train-1", 1, "refused")
