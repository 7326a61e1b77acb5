"""`clusterctl cp` over a real sshd's SFTP."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.integration.cli.conftest import LoopbackCluster

SIZE = 3_000_001


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three megabytes that are not alike anywhere."""
    path = tmp_path / "weights.bin"
    path.write_bytes(b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(SIZE // 32 + 1))[:SIZE])
    path.chmod(0o640)
    return path


def partial_of(target: Path, source: Path) -> Path:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return target.with_name(f".{target.name}.clusterctl-{digest[:16]}")


def test_a_file_goes_to_every_node_and_comes_back(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    done = loopback_cluster.run("cp", str(source), f"1:{folder}")
    target = folder / "weights.bin"
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in folder.iterdir()] == ["weights.bin"]
    again = loopback_cluster.run("cp", str(source), f"1:{folder}/")
    assert b"was there already" in again.stderr

    back = tmp_path / "back"
    done = loopback_cluster.run("cp", f"0-2:{target}", str(back))
    assert done.returncode == 0, done.stderr
    for slot in range(3):
        assert (back / f"train-{slot}" / "weights.bin").read_bytes() == source.read_bytes()


def test_a_broken_copy_goes_on_and_a_damaged_one_replaces_nothing(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.bin"
    target.write_bytes(b"the old one")
    partial = partial_of(target, source)
    partial.write_bytes(b"\0" * (SIZE - 10))
    done = loopback_cluster.run("cp", str(source), f"0:{target}")
    assert b"another checksum" in done.stderr
    assert target.read_bytes() == b"the old one"
    assert not partial.exists()
    assert done.returncode == 1

    partial.write_bytes(source.read_bytes()[: SIZE - 10])
    inode = partial.stat().st_ino
    done = loopback_cluster.run("cp", str(source), f"0:{target}")
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_ino == inode

    here = tmp_path / "here.bin"
    partial_of(here, source).write_bytes(source.read_bytes()[:1_000_000])
    done = loopback_cluster.run("cp", f"0:{target}", str(here))
    assert done.returncode == 0, done.stderr
    assert here.read_bytes() == source.read_bytes()
    assert not partial_of(here, source).exists()


def test_what_fails_is_named_and_the_others_are_copied(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    loopback_cluster.stop(3)
    done = loopback_cluster.run("cp", f"2-3:{source}", f"{tmp_path / 'out'}/", "--connect-timeout", "5s")
    assert (tmp_path / "out" / "train-2" / "weights.bin").is_file()
    assert b"[train-3] " in done.stderr
    assert b"refuses connections" in done.stderr
    assert done.returncode == 4
    done = loopback_cluster.run("cp", "1:/nowhere/at/all", str(tmp_path))
    assert b"train-1: /nowhere/at/all: No such file" in done.stderr
    assert done.returncode == 1
