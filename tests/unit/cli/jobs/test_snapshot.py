"""Which files of a folder go to the nodes."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from clusterctl.jobs.snapshot import Snapshot, is_ignored, looks_secret, write_archive


def snapshot(folder: Path) -> Snapshot:
    files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()))
    return Snapshot(folder=folder, files=files, size_bytes=0)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        (".env", True),
        ("config/.env.local", True),
        ("id_ed25519", True),
        ("keys/server.pem", True),
        (".env.example", False),
        ("environment.py", False),
        ("train.py", False),
    ],
)
def test_a_name_says_whether_it_may_hold_a_secret(name: str, is_secret: bool) -> None:
    assert looks_secret(name) is is_secret


@pytest.mark.parametrize(
    ("name", "is_left_out"),
    [("data/big.bin", True), ("a/data/x", True), ("x.ckpt", True), ("sub/x.ckpt", True), ("train.py", False)],
)
def test_a_pattern_fits_a_path_or_any_part_of_it(name: str, is_left_out: bool) -> None:
    assert is_ignored(name, ["data", "*.ckpt"]) is is_left_out


def test_the_same_content_is_the_same_archive_whenever_it_was_written(tmp_path: Path) -> None:
    archives = []
    for when_s in (1_000, 2_000_000):
        folder = tmp_path / str(when_s)
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
        (folder / "sub" / "run.sh").chmod(0o700)
        (folder / "link").symlink_to("sub/run.sh")
        stream = io.BytesIO()
        archives.append((write_archive(snapshot(folder), stream), stream.getvalue()))
    assert archives[0] == archives[1]
    with tarfile.open(fileobj=io.BytesIO(archives[0][1])) as tar:
        rows = {member.name: (member.mode, member.issym(), member.uid, member.mtime) for member in tar}
    assert rows["sub/run.sh"] == (0o755, False, 0, 0)
    assert rows["link"][1] is True


def test_another_content_is_another_hash(tmp_path: Path) -> None:
    hashes = set()
    for text in ("a", "b", "ab"):
        (tmp_path / "train.py").write_text(text)
        hashes.add(write_archive(snapshot(tmp_path), io.BytesIO()))
    assert len(hashes) == 3
