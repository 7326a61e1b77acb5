"""Entries of archives, with Python's own filter and without."""

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
    made = tmp_path_factory.mktemp("below") / "here"
    (made / "a" / "b").mkdir(parents=True)
    (made / "out").symlink_to("..")
    (made / "in").symlink_to("a/b")
    return made


def entry(name: str, kind: bytes, link: str, mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.uid, made.uname = kind, link, mode, 4711, "root"
    return made


@given(name=NAMES, kind=KINDS, link=NAMES, mode=st.integers(0, 0o7777))
def test_without_pythons_filter_the_same_is_written_with_the_same_permissions(
    folder: Path, name: str, kind: bytes, link: str, mode: int
) -> None:
    member = entry(name, kind, link, mode)
    ours, theirs = without_data_filter(member, folder), written_as(member, folder)
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert (ours.name, ours.type, ours.linkname) == (theirs.name, theirs.type, theirs.linkname)
        assert ours.mode == (FOLDER_MODE if theirs.mode is None else theirs.mode)
        assert (ours.uid, ours.gid, ours.uname, ours.gname) == (os.getuid(), os.getgid(), "", "")


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../x", tarfile.REGTYPE, ""),
        ("out/x", tarfile.REGTYPE, ""),
        ("x", tarfile.SYMTYPE, "/etc/passwd"),
        ("x", tarfile.SYMTYPE, "../x"),
        ("a/x", tarfile.SYMTYPE, "../out/x"),
        ("a/x", tarfile.LNKTYPE, "../x"),
        ("x", tarfile.FIFOTYPE, ""),
        ("x", tarfile.CHRTYPE, ""),
    ],
)
def test_what_would_lie_or_lead_outside_is_not_written(folder: Path, name: str, kind: bytes, link: str) -> None:
    member = entry(name, kind, link, 0o644)
    assert (without_data_filter(member, folder), written_as(member, folder)) == (None, None)
