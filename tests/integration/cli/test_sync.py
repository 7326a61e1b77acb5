"""`clusterctl sync` by the real rsync over a real sshd."""

from __future__ import annotations

from pathlib import Path

from tests.integration.cli.conftest import LoopbackCluster


def test_a_folder_goes_there_and_back_and_what_is_gone_goes(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    source = tmp_path / "my source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a b.txt").write_text("one")
    (source / "left.tmp").write_text("out")
    there = tmp_path / "there"
    done = loopback_cluster.run("sync", "--exclude", "*.tmp", f"{source}/", f"1:{there}/")
    assert done.returncode == 0, done.stderr
    assert b"[train-1] 1 files" in done.stderr
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


def test_another_host_key_is_told_in_our_words_with_what_helps(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    loopback_cluster.change_host_key(1)
    done = loopback_cluster.run("sync", f"{tmp_path / 'source'}/", "1:there")
    said = done.stderr.decode()
    assert "train-1 (127.0.17.2:" in said
    assert "shows the host key SHA256:" in said
    assert "  next: clusterctl replace --node 1 --cluster train" in said
    assert "IDENTIFICATION" not in said
    assert done.returncode == 255
    done = loopback_cluster.run("sync", f"{tmp_path / 'source'}/", "0-1:there")
    assert b"next: clusterctl replace --node 1 --cluster train" in done.stderr
    assert done.returncode == 4


def test_an_rsync_that_says_nothing_is_not_waited_for(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    program = loopback_cluster.folder / "node-1" / "bin" / "rsync"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    program.chmod(0o755)
    done = loopback_cluster.run("sync", f"{tmp_path / 'source'}/", "1:there", "--timeout", "1s")
    assert b"train-1: nothing moved for 1 s; the same command goes on where it was" in done.stderr
    assert done.returncode == 1
