"""A file is put in place whole, with its mode and owner, or what was there stays."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from clusterctl_infra.put_in_place import put_in_place


def test_the_file_has_the_text_and_the_mode_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "train.json"
    for mode, text in ((0o600, "first"), (0o644, "second: größer")):
        put_in_place(file, text, mode=mode)
        assert (file.read_text("utf-8"), stat.S_IMODE(file.stat().st_mode)) == (text, mode)
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_for_its_owner_alone_unless_it_is_said(tmp_path: Path) -> None:
    put_in_place(tmp_path / "key", "secret")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_text_that_cannot_be_written_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "train.json"
    put_in_place(file, "whole")
    with pytest.raises(UnicodeEncodeError):
        put_in_place(file, "half \ud800")
    assert file.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_names_the_file_and_not_the_one_beside_it(tmp_path: Path) -> None:
    in_the_way = tmp_path / "train.json"
    in_the_way.mkdir()
    with pytest.raises(OSError, match=r"train\.json") as no_room:
        put_in_place(in_the_way, "text")
    assert (no_room.value.errno, no_room.value.filename) == (errno.EISDIR, str(in_the_way))
    assert list(tmp_path.iterdir()) == [in_the_way]
    with pytest.raises(FileNotFoundError) as no_folder:
        put_in_place(tmp_path / "none/train.json", "text")
    assert no_folder.value.filename == str(tmp_path / "none/train.json")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_leaves_a_file_to_its_owner_and_a_new_one_to_the_folders(tmp_path: Path) -> None:
    folder, file = tmp_path / "home", tmp_path / "home/config"
    folder.mkdir()
    os.chown(folder, 1234, 1235)
    put_in_place(file, "new", keeps_owner=True)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1235)
    os.chown(file, 4321, 4322)
    put_in_place(file, "another", keeps_owner=True)
    assert (file.stat().st_uid, file.stat().st_gid) == (4321, 4322)
    put_in_place(file, "root's own")
    assert file.stat().st_uid == 0
