"""Texts are made once for the same ingredients, and a cache that cannot be used is no obstacle."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.kept_texts import cache_folder, kept


def test_the_same_ingredients_are_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> dict[str, str]:
        made.append("once")
        return {"b.py": "2", "a.py": "1"}

    first = kept(tmp_path / "agent", ["x", "y"], make)
    again = kept(tmp_path / "agent", ["x", "y"], make)
    assert list(first.items()) == list(again.items()) == [("b.py", "2"), ("a.py", "1")]
    assert made == ["once"]
    kept(tmp_path / "agent", ["x", "other"], make)
    assert made == ["once", "once"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": '])
def test_a_torn_file_is_made_anew(tmp_path: Path, text: str) -> None:
    kept(tmp_path, ["x"], lambda: {"a": "1"})
    (path,) = tmp_path.iterdir()
    path.write_text(text)
    assert kept(tmp_path, ["x"], lambda: {"a": "2"}) == {"a": "2"}
    assert kept(tmp_path, ["x"], lambda: {"a": "3"}) == {"a": "2"}


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert kept(tmp_path / "file" / "agent", ["x"], lambda: {"a": "1"}) == {"a": "1"}


def test_the_cache_is_where_a_person_says() -> None:
    assert cache_folder({"CLUSTERCTL_CACHE": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/clusterctl")
