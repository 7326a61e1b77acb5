"""Archives that nodes made, unpacked here: nothing leads out of the folder, and one that broke off is reported."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from clusterctl.jobs.copying_out import placed
from clusterctl.jobs.fetching import Fetched, write_within
from clusterctl.jobs.unpacking import Moved, move_into, staging_folder, unpack
from clusterctl.on_node.job.pack import refuse_more_than

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


def leading_out(folder: Path) -> list[Path]:
    """The links in the folder that lead out of it."""
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    return [path for path in links if not path.resolve().is_relative_to(folder.resolve())]


def test_files_come_with_their_folders(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("a/b.txt"), b"12"), (tarfile.TarInfo("c"), b"3"))
    fetched = unpack(io.BytesIO(packed), tmp_path / "here")
    assert (fetched.files, fetched.size_bytes, fetched.error) == (2, 3, None)
    assert (tmp_path / "here/a/b.txt").read_bytes() == b"12"


def test_an_archive_of_nothing_is_an_empty_folder(tmp_path: Path) -> None:
    fetched = unpack(io.BytesIO(archive()), tmp_path / "here")
    assert (fetched.files, fetched.error, list((tmp_path / "here").iterdir())) == (0, None, [])


@pytest.mark.parametrize(
    "rows",
    [
        [(tarfile.TarInfo("../out"), b"x")],
        [link("away", "/etc"), (tarfile.TarInfo("away/out"), b"x")],
        [link("up", ".."), (tarfile.TarInfo("up/out"), b"x")],
        [link("a/b", "../d"), link("c", "a/b/.."), link("c/e", "../.."), (tarfile.TarInfo("c/e/out"), b"x")],
        [link("a/b/", "../.."), (tarfile.TarInfo("a/b/out"), b"x")],
        [odd("hard", type=tarfile.LNKTYPE, linkname="../out")],
        [link("in", "a/b"), odd("hard", type=tarfile.LNKTYPE, linkname="in/../../out")],
        [odd("pipe", type=tarfile.FIFOTYPE)],
        [odd("disk", type=tarfile.BLKTYPE, devmajor=8)],
        [odd("zero", type=tarfile.CHRTYPE, devmajor=1, devminor=5)],
        [odd("d/" * 200 + "x")],
        [odd("a" * 5000)],
    ],
)
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    fetched = unpack(io.BytesIO(archive(*rows)), tmp_path / "here")
    assert fetched.left_out
    assert fetched.left_out[0] in Fetched(node=NODE, left_out=fetched.left_out).summary
    assert not (tmp_path / "out").exists()
    assert all(path.is_file() or path.is_dir() or path.is_symlink() for path in (tmp_path / "here").rglob("*"))
    assert not Path("/etc/out").exists()
    assert leading_out(tmp_path / "here") == []


def test_an_archive_that_broke_off_is_told_as_one(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("a"), bytes(range(256)) * 400))
    fetched = unpack(io.BytesIO(packed[: len(packed) // 2]), tmp_path)
    assert fetched.error is not None
    assert fetched.error.startswith("not all came: ")


def test_an_archive_that_unfolds_to_more_than_was_meant_is_left(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("a"), b"0" * 100), (tarfile.TarInfo("b"), b"0" * 100))
    fetched = unpack(io.BytesIO(packed), tmp_path, most_bytes=150)
    assert fetched.error == "more than the limit of 150 bytes"
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("row", [odd("late", mtime=2**70), odd("named", pax_headers={"path": "a\0b"})])
def test_an_entry_with_a_time_or_a_name_that_no_file_can_have_ends_the_reading_with_an_error(
    tmp_path: Path, row: tuple[tarfile.TarInfo, bytes]
) -> None:
    fetched = unpack(io.BytesIO(archive(row)), tmp_path / "here")
    assert fetched.error is not None
    assert fetched.error.startswith("not all came: ")


def test_a_node_that_sends_without_end_fills_no_disk_here() -> None:
    spooled = io.BytesIO()
    for _ in range(3):
        write_within(spooled, b"0123456789", 15)
    assert spooled.getvalue() == b"012345678901234"


def test_an_archive_of_more_files_than_are_taken_is_left(tmp_path: Path) -> None:
    packed = archive(*((tarfile.TarInfo(str(number)), b"") for number in range(5)))
    fetched = unpack(io.BytesIO(packed), tmp_path, most_files=3)
    assert fetched.error is not None
    assert fetched.error.endswith("more than 3 files")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_would_fill_the_memory_is_not_read(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("header")
    header.type, header.size = kind, 1 << 40
    zeros = gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(16 << 20), 9)
    fetched = unpack(io.BytesIO(zeros), tmp_path)
    assert fetched.error == "the archive has a header of more than 1 048 576 bytes"


def test_a_header_for_all_files_and_a_negative_size_are_refused(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", pax_headers={"comment": "x"}) as tar:
        tar.addfile(tarfile.TarInfo("a"))
    assert "headers for all" in str(unpack(packed, tmp_path).error)
    row = tarfile.TarInfo("a")
    row.size = -512
    below = gzip.compress(row.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    assert unpack(io.BytesIO(below), tmp_path).error == "the archive has a file of negative size"


def test_what_was_left_out_is_read_over_and_the_rest_comes(tmp_path: Path) -> None:
    packed = archive((tarfile.TarInfo("../out"), bytes(5 << 20)), (tarfile.TarInfo("after"), b"1"))
    fetched = unpack(io.BytesIO(packed), tmp_path)
    assert (fetched.error, fetched.files, fetched.left_out) == (None, 1, ("../out",))


def test_files_that_are_more_than_the_limit_are_refused_before_any_is_packed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").symlink_to("a")
    rows = [(tmp_path / name, name) for name in ("a", "b", "gone")]
    refuse_more_than(2, rows)
    with pytest.raises(ValueError, match=r"^2 bytes in 2 files: more than the limit of 1 bytes$"):
        refuse_more_than(1, rows)


def test_what_came_whole_replaces_files_of_the_same_names_and_nothing_else(tmp_path: Path) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    for path in (source / "a/new", source / "a/both", target / "a/both", target / "a/old"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(path))
    (source / "link").symlink_to("a")
    assert move_into(source, target) == Moved()
    assert (target / "a/both").read_text() == str(source / "a/both")
    assert sorted(path.name for path in (target / "a").iterdir()) == ["both", "new", "old"]
    assert (target / "link").readlink() == Path("a")


def test_a_link_in_the_target_leads_nothing_out_of_it(tmp_path: Path) -> None:
    source, target, other = tmp_path / "from", tmp_path / "to", tmp_path / "other"
    for folder in (source / "a", target, other):
        folder.mkdir(parents=True)
    (source / "a/x").write_text("x")
    (target / "a").symlink_to(other)
    assert move_into(source, target) == Moved(left_out=("a",))
    assert list(other.iterdir()) == []


def test_a_folder_replaces_a_link_of_an_earlier_copy_and_leaves_what_it_led_to(tmp_path: Path) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    for path in (source / "latest/model", target / "ck-1/model"):
        path.parent.mkdir(parents=True)
        path.write_text(path.parent.name)
    (source / "a").mkdir()
    (target / "latest").symlink_to("ck-1")
    (target / "a").symlink_to("a")
    assert move_into(source, target) == Moved()
    assert (target / "ck-1/model").read_text() == "ck-1"
    assert not (target / "latest").is_symlink()
    assert (target / "latest/model").read_text() == "latest"


def test_what_is_of_another_kind_here_is_named_and_the_rest_comes(tmp_path: Path) -> None:
    source, target = tmp_path / NODE.name, tmp_path / "to"
    for folder in (source / "log", source / "ck-1", target / "deep/latest", target / "file", source / "deep"):
        folder.mkdir(parents=True)
    for path in (source / "file", source / "log/x", source / "ck-1/x", target / "deep/latest/old", target / "log"):
        path.write_text(path.name)
    (source / "deep/latest").symlink_to("../ck-1")
    result = placed(Fetched(node=NODE, files=4), tmp_path, target).summary
    assert result.partition("not all was put in place: ")[2].split("; ") == [
        "file is a folder here, and a file on the node",
        "log is a file here, and a folder on the node",
        "deep/latest is a folder here, and a link on the node",
        "move what is here away, and copy again",
    ]
    assert (target / "ck-1/x").read_text() == "x"
    assert (target / "deep/latest/old").read_text() == "old"
    assert (target / "log").read_text() == "log"


def test_nothing_of_an_archive_that_broke_off_is_in_the_target(tmp_path: Path) -> None:
    target = tmp_path / "to"
    with staging_folder(target) as staging:
        assert list(tmp_path.iterdir()) == [staging]
        (staging / NODE.name).mkdir()
        (staging / NODE.name / "half").write_text("x")
        broken = Fetched(node=NODE, error="not all came: it broke off")
        assert placed(broken, staging, target) == broken
    assert list(tmp_path.iterdir()) == []
