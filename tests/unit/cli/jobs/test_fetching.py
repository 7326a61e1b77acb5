"""Archives that nodes made, unpacked here: nothing leads out of the folder, and what broke off is said."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from clusterctl.jobs.fetching import unpack, write_within

from tests.unit.cli.jobs.test_spec import NODES

NODE = NODES[0]


def archive(*rows: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for row, content in rows:
            row.size = len(content)
            tar.addfile(row, io.BytesIO(content))
    return packed.getvalue()


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    row = tarfile.TarInfo(name)
    row.type, row.linkname = tarfile.SYMTYPE, target
    return row, b""


def odd(name: str, **facts: object) -> tuple[tarfile.TarInfo, bytes]:
    row = tarfile.TarInfo(name)
    for fact, value in facts.items():
        setattr(row, fact, value)
    return row, b"x"


def test_files_come_with_their_folders(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("a/b.txt"), b"12"), (tarfile.TarInfo("c"), b"3"))
    fetched = unpack(io.BytesIO(packed), NODE, tmp_path / "here")
    assert (fetched.files, fetched.size_bytes, fetched.error) == (2, 3, None)
    assert (tmp_path / "here/a/b.txt").read_bytes() == b"12"


@pytest.mark.parametrize(
    "rows",
    [
        [(tarfile.TarInfo("../out"), b"x")],
        [link("away", "/etc"), (tarfile.TarInfo("away/out"), b"x")],
        [link("up", ".."), (tarfile.TarInfo("up/out"), b"x")],
    ],
)
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    fetched = unpack(io.BytesIO(archive(*rows)), NODE, tmp_path / "here")
    assert fetched.left_out
    assert fetched.left_out[0] in fetched.told
    assert not (tmp_path / "out").exists()
    assert not Path("/etc/out").exists()


def test_an_archive_that_broke_off_is_told_as_one(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("a"), bytes(range(256)) * 400))
    fetched = unpack(io.BytesIO(packed[: len(packed) // 2]), NODE, tmp_path)
    assert fetched.error is not None
    assert fetched.error.startswith("not all came: ")


def test_an_archive_that_unfolds_to_more_than_was_meant_is_left(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("a"), b"0" * 100), (tarfile.TarInfo("b"), b"0" * 100))
    fetched = unpack(io.BytesIO(packed), NODE, tmp_path, most_bytes=150)
    assert fetched.error == "more than 150 bytes; the rest was left there"
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("row", [odd("late", mtime=2**70), odd("named", pax_headers={"path": "a\0b"})])
def test_what_no_file_has_ends_that_nodes_archive_and_nothing_else(
    tmp_path: Path, row: tuple[tarfile.TarInfo, bytes]
) -> None:
    fetched = unpack(io.BytesIO(archive(row)), NODE, tmp_path / "here")
    assert fetched.error is not None
    assert fetched.error.startswith("not all came: ")


def test_a_node_that_sends_without_end_fills_no_disk_here() -> None:
    spooled = io.BytesIO()
    for _ in range(3):
        write_within(spooled, b"0123456789", 15)
    assert spooled.getvalue() == b"012345678901234"
