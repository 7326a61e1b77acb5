"""Which files of a folder go to the nodes."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from clusterctl.jobs.run_request import refuse_missing_script
from clusterctl.jobs.snapshot import (
    Snapshot,
    is_ignored,
    looks_secret,
    refuse_without_git,
    sent_files,
    walked,
    write_archive,
)
from clusterctl_infra.errors import UsageError


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
        for path in (folder / "sub" / "run.sh", folder / "link"):
            os.utime(path, (when_s, when_s), follow_symlinks=False)
        stream = io.BytesIO()
        archives.append((write_archive(snapshot(folder), stream), stream.getvalue()))
    assert archives[0] == archives[1]
    assert archives[0][1][4:8] == bytes(4), "the time in gzip's own header (RFC 1952)"
    with tarfile.open(fileobj=io.BytesIO(archives[0][1])) as tar:
        rows = {member.name: (member.mode, member.issym(), member.uid, member.mtime) for member in tar}
    assert rows["sub/run.sh"] == (0o755, False, 0, 0)
    assert rows["link"][1] is True


def test_a_name_that_is_no_utf_8_is_sent_as_it_is(tmp_path: Path) -> None:
    name = os.fsdecode(b"b\xff.py")
    (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(name)
    stream = io.BytesIO()
    write_archive(snapshot(tmp_path), stream)
    with tarfile.open(fileobj=io.BytesIO(stream.getvalue())) as tar:
        assert {(member.name, member.linkname) for member in tar} == {(name, ""), ("link", name)}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    gone = Snapshot(folder=tmp_path, files=("gone.py",), size_bytes=1)
    with pytest.raises(UsageError, match=r"gone\.py cannot be read \(No such file or directory\)"):
        write_archive(gone, io.BytesIO())


def test_what_lies_behind_a_link_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere" / "sub" / "id.txt").write_text("not meant")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "data").symlink_to("../elsewhere")
    names = ("data/sub/id.txt", "data", "train.py")
    (tmp_path / "code" / "train.py").write_text("")
    assert sent_files(tmp_path / "code", names) == ("data", "train.py")


def test_links_of_a_folder_without_git_are_sent_whatever_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.txt").touch()
    code = tmp_path / "code"
    (code / "sub").mkdir(parents=True)
    (code / "train.py").touch()
    (code / ".clusterctlignore").write_text("scratch\n")
    for name, target in (("sub/data", "../../elsewhere"), ("x", "train.py"), ("gone", "none"), ("scratch", "sub")):
        (code / name).symlink_to(target)
    assert sorted(walked(code)) == [".clusterctlignore", "gone", "sub/data", "train.py", "x"]


def test_a_repository_is_not_sent_where_no_git_says_what_it_ignores(tmp_path: Path) -> None:
    (tmp_path / "code" / "sub").mkdir(parents=True)
    refuse_without_git(tmp_path / "code" / "sub")
    (tmp_path / "code" / ".git").mkdir()
    with pytest.raises(UsageError, match="code, and git is not installed here: what git ignores would be sent too"):
        refuse_without_git(tmp_path / "code" / "sub")


def test_a_repository_with_a_list_of_our_own_is_sent_by_that_without_git(tmp_path: Path) -> None:
    for name in (".git/config", "train.py", "data/big.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(UsageError) as raised:
        refuse_without_git(tmp_path)
    assert raised.value.hint == f"install git, or list what is not to be sent in {tmp_path}/.clusterctlignore"
    (tmp_path / ".clusterctlignore").write_text("data\n")
    refuse_without_git(tmp_path)
    assert sorted(walked(tmp_path)) == [".clusterctlignore", "train.py"]


def test_another_content_is_another_hash(tmp_path: Path) -> None:
    hashes = set()
    for text in ("a", "b", "ab"):
        (tmp_path / "train.py").write_text(text)
        hashes.add(write_archive(snapshot(tmp_path), io.BytesIO()))
    assert len(hashes) == 3


def test_a_script_that_is_not_in_the_folder_is_named_with_the_folder_and_the_nearest_one(tmp_path: Path) -> None:
    snapshot = Snapshot(folder=tmp_path, files=("train.py",), size_bytes=1)
    refuse_missing_script(["train.py"], snapshot)
    with pytest.raises(UsageError, match=rf"^there is no trian\.py in {tmp_path} \(did you mean train\.py\?\)$"):
        refuse_missing_script(["trian.py"], snapshot)
    (tmp_path / "ignored.py").touch()
    with pytest.raises(UsageError, match=r"^ignored\.py: git ignores it, so it does not go to the nodes$"):
        refuse_missing_script(["ignored.py"], snapshot)
