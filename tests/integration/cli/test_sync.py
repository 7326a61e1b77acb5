"""`clusterctl sync` by the real rsync over a real sshd."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.waiting import comes_true, has_ended

LARGE_BYTES = 4_000_000_000
"""Sparse, and more than goes over the connection before the test stops the node."""


def test_a_folder_goes_there_and_back_and_what_is_gone_goes(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    source = tmp_path / "my source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a b.txt").write_text("one")
    (source / "left.tmp").write_text("out")
    there = tmp_path / "there"
    done = loopback_cluster.run("sync", "--exclude", "*.tmp", f"{source}/", f"1:{there}/")
    assert done.returncode == 0, done.stderr
    assert b"[train-1] 1 file, " in done.stderr
    assert (there / "deep" / "a b.txt").read_text() == "one"
    assert not (there / "left.tmp").exists()

    (there / "stale").write_text("old")
    done = loopback_cluster.run("sync", "--delete", f"{source}/", f"1:{there}/")
    assert done.returncode == 0, done.stderr
    assert not (there / "stale").exists()

    loopback_cluster.stop(3)
    done = loopback_cluster.run("sync", f"2-3:{there}/", str(tmp_path / "back"), "--connect-timeout", "3s")
    assert (tmp_path / "back" / "train-2" / "deep" / "a b.txt").read_text() == "one"
    assert b"[train-3] " in done.stderr
    assert done.returncode == 4


def test_what_root_alone_can_make_does_not_come_from_a_node(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "shell").write_text("#!/bin/sh\n")
    (there / "shell").chmod(0o6755)
    os.mkfifo(there / "pipe")
    if os.geteuid() == 0:
        os.chown(there / "shell", 12345, 12345)
        (there / "shell").chmod(0o6755)
        os.mknod(there / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    done = loopback_cluster.run("sync", f"1:{there}/", f"{tmp_path}/back/")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["shell"]
    came = (tmp_path / "back" / "shell").stat()
    assert (came.st_mode & 0o7777, came.st_uid, came.st_gid) == (0o755, os.geteuid(), os.getegid())

    done = loopback_cluster.run("sync", "--preserve", f"1:{there}/", f"{tmp_path}/kept/")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept" / "shell").stat().st_mode & 0o7777 == 0o6755


def test_another_host_key_is_told_in_our_words_with_what_helps(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    loopback_cluster.change_host_key(1)
    done = loopback_cluster.run("sync", f"{tmp_path / 'source'}/", "1:there")
    stderr = done.stderr.decode()
    assert "train-1 (127.0.17.2:" in stderr
    assert "shows the host key SHA256:" in stderr
    assert "  next: clusterctl replace --node 1 --cluster train" in stderr
    assert "IDENTIFICATION" not in stderr
    assert done.returncode == 255
    done = loopback_cluster.run("sync", f"{tmp_path / 'source'}/", "0-1:there")
    assert b"next: clusterctl replace --node 1 --cluster train" in done.stderr
    assert done.returncode == 4


def test_a_node_that_stands_still_in_the_middle_is_not_waited_for(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    """Fetching, rsync itself would wait for ever: it takes its own keepalives for signs of life."""
    there, back = loopback_cluster.folder / "there", tmp_path / "back"
    there.mkdir()
    with (there / "large").open("wb") as large:
        large.truncate(LARGE_BYTES)
    program, pid = loopback_cluster.folder / "node-1" / "bin" / "rsync", tmp_path / "pid"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho $$ >{pid}\nexec /usr/bin/rsync "$@"\n')
    program.chmod(0o755)
    command = loopback_cluster.command("sync", f"1:{there}/", f"{back}/", "--timeout", "3s")
    with subprocess.Popen(command, env=loopback_cluster.environ, stderr=subprocess.PIPE) as process:
        assert comes_true(lambda: any(file.stat().st_size > 1_000_000 for file in back.glob(".large.*")))
        os.kill(int(pid.read_text()), signal.SIGSTOP)
        try:
            _, stderr = process.communicate(timeout=20)
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert b"train-1: nothing moved for 3 s; run the same command again: it resumes" in stderr
    assert process.returncode == 1


def test_ctrl_c_ends_every_rsync_and_begins_no_other(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    started = tmp_path / "started"
    for slot in range(4):
        program = loopback_cluster.folder / f"node-{slot}" / "bin" / "rsync"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho $$ >>{started}\nexec cat >/dev/null\n")
        program.chmod(0o755)
    command = loopback_cluster.command("sync", f"{tmp_path / 'source'}/", "all:there")
    with subprocess.Popen(command, env=loopback_cluster.environ, stderr=subprocess.PIPE) as process:
        assert comes_true(lambda: started.exists() and len(started.read_text().split()) == 4)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=15) == 130
    assert all(has_ended(int(pid)) for pid in started.read_text().split())


def test_an_rsync_that_says_nothing_is_not_waited_for(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    program = loopback_cluster.folder / "node-1" / "bin" / "rsync"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    program.chmod(0o755)
    done = loopback_cluster.run("sync", f"{tmp_path / 'source'}/", "1:there", "--timeout", "1s")
    assert b"train-1: nothing moved for 1 s; run the same command again: it resumes" in done.stderr
    assert done.returncode == 1


def test_cp_r_puts_each_folder_under_its_own_name_and_does_the_same_again(
    steady_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    for name in ("src", "configs"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_text(name)
    there = tmp_path / "there"
    for _ in range(2):
        done = steady_cluster.run("cp", "-r", f"{tmp_path}/src/", f"{tmp_path}/configs", f"0:{there}/new")
        assert done.returncode == 0, done.stderr
    assert sorted(str(path.relative_to(there)) for path in there.rglob("file")) == [
        *("new/configs/deep/file", "new/src/deep/file")
    ]
    done = steady_cluster.run("cp", "-r", f"0-1:{there}/new/src", f"{tmp_path}/back")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back" / "train-0" / "src" / "deep" / "file").read_text() == "src"
    assert (tmp_path / "back" / "train-1" / "src" / "deep" / "file").read_text() == "src"
