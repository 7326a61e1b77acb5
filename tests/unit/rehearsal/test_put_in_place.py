"""A region's file is whole or the one before, and for its owner alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from clusterctl_rehearsal.put_in_place import put_in_place


def test_the_file_is_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "region.json"
    left = file.with_name("region.json.new")
    left.touch(mode=0o600)  # by a writer that was killed
    put_in_place(file, "{}")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("{}", 0o600)


def test_a_text_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "region.json"
    put_in_place(file, "{}")
    with pytest.raises(UnicodeEncodeError):
        put_in_place(file, "half \ud800")
    assert file.read_text() == "{}"
