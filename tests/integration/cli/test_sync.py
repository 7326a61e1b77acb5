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
