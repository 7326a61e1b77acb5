"""Which entries of archives may be written below a folder, whether or not Python has a filter itself."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from clusterctl.jobs.member_filter import FOLDER_MODE, without_data_filter, written_as
from hypothesis import given
from hypothesis import strategies as st

PARTS = st.sampled_from(["a", "b", "..", ".", "", "out", "in", "ü"])
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a link that leads out of it and one that does not."""
    made = tmp_path_factory.mktemp("below").resolve() / "here"
    (made / "a" / "b").mkdir(parents=True)
    (made / "out").symlink_to("..")
    (made / "in").symlink_to("a/b")
    return made


def entry(name: str, kind: bytes, link: str, mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.uid, made.uname = kind, link, mode, 4711, "root"
    return made


@given(name=NAMES, kind=KINDS, link=NAMES, mode=st.integers(0, 0o7777))
def test_what_is_written_lies_in_the_folder_and_so_does_whatever_a_link_leads_to(
    folder: Path, name: str, kind: bytes, link: str, mode: int
) -> None:
    for written in filters(entry(name, kind, link, mode), folder):
        if written is None:
            continue
        place = folder / written.name
        assert place.resolve() != folder or written.isdir()
        reached = [place]
        if written.issym():
            reached.append(place.parent / written.linkname)
        if written.islnk():
            reached.append(folder / written.linkname)
        assert [path for path in reached if not path.resolve().is_relative_to(folder)] == []
        assert written.mode is None or written.mode & ~0o755 == 0


def filters(member: tarfile.TarInfo, folder: Path) -> tuple[tarfile.TarInfo | None, tarfile.TarInfo | None]:
    """The entry as our own filter leaves it, and as ours with Python's, where there is one; None: left out."""
    return without_data_filter(member, folder), written_as(member, folder)


@pytest.mark.parametrize(
    ("member", "name", "link", "mode"),
    [
        (("x", tarfile.REGTYPE, "", 0o644), "x", "", 0o644),
        (("x", tarfile.REGTYPE, "", 0o7777), "x", "", 0o755),
        (("x", tarfile.REGTYPE, "", 0o455), "x", "", 0o644),
        (("x", tarfile.REGTYPE, "", 0), "x", "", 0o600),
        (("/x", tarfile.REGTYPE, "", 0o700), "x", "", 0o700),
        (("in/x", tarfile.REGTYPE, "", 0o644), "in/x", "", 0o644),
        (("a/c", tarfile.DIRTYPE, "", 0o2700), "a/c", "", FOLDER_MODE),
        (("x", tarfile.SYMTYPE, "a/b", 0o777), "x", "a/b", FOLDER_MODE),
        (("a/b/x", tarfile.SYMTYPE, "../../in", 0o777), "a/b/x", "../../in", FOLDER_MODE),
        (("x", tarfile.LNKTYPE, "a/b", 0o644), "x", "a/b", 0o644),
    ],
)
def test_an_entry_is_written_with_plain_permissions_and_no_owner(
    folder: Path, member: tuple[str, bytes, str, int], name: str, link: str, mode: int
) -> None:
    for written in filters(entry(*member), folder):
        assert written is not None
        assert (written.name, written.type, written.linkname) == (name, member[1], link)
        assert (FOLDER_MODE if written.mode is None else written.mode) == mode
        assert (written.uid or os.getuid(), written.gid or os.getgid()) == (os.getuid(), os.getgid())
        assert not written.uname


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../x", tarfile.REGTYPE, ""),
        ("out/x", tarfile.REGTYPE, ""),
        ("x", tarfile.SYMTYPE, "/etc/passwd"),
        ("x", tarfile.SYMTYPE, "../x"),
        ("a/x", tarfile.SYMTYPE, "../out/x"),
        ("a/x/", tarfile.SYMTYPE, "../.."),
        ("a/..", tarfile.SYMTYPE, "in"),
        ("x/.", tarfile.SYMTYPE, "out/x"),
        (".", tarfile.REGTYPE, ""),
        ("x", tarfile.SYMTYPE, "in/../.."),
        ("a/x", tarfile.LNKTYPE, "../x"),
        ("x", tarfile.LNKTYPE, "in/../../x"),
        ("x", tarfile.FIFOTYPE, ""),
        ("x", tarfile.CHRTYPE, ""),
    ],
)
def test_what_would_lie_or_lead_outside_is_not_written(folder: Path, name: str, kind: bytes, link: str) -> None:
    member = entry(name, kind, link, 0o644)
    assert (without_data_filter(member, folder), written_as(member, folder)) == (None, None)
