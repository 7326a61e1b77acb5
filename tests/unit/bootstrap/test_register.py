"""The register of processes that want a warning: entries of no living process go, and nobody can fill it for others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_bootstrap.node import register
from clusterctl_bootstrap.node.files import locked
from clusterctl_bootstrap.node.register import MOST_OF_A_USER, access_list, asking, users_in

from tests.unit.bootstrap.fake_outside import FakeOutside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty register, on a machine where this process is the only one."""
    register.open_register(tmp_path, FakeOutside())
    (tmp_path / "proc" / str(os.getpid())).mkdir(parents=True)
    return tmp_path / register.REGISTER


def test_who_asks_and_lives_is_found_and_nothing_else_stays(folder: Path, tmp_path: Path) -> None:
    own = folder / str(os.getpid())
    own.touch()
    for name in (".hidden", "self", "²", "0", f"0{os.getpid()}", "99999999", "a b"):
        (folder / name).touch()
    (folder / "link").symlink_to("/etc/passwd")
    assert asking(tmp_path) == [os.getpid()]
    assert list(folder.iterdir()) == [own]


def test_an_entry_that_goes_while_it_is_looked_at_hides_no_other(folder: Path, tmp_path: Path) -> None:
    """Its process has ended, or its owner does not ask any more."""

    @contextlib.contextmanager
    def scan(path: str) -> Iterator[list[os.DirEntry[str]]]:
        with os.scandir(path) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        (folder / "1").unlink()
        yield found

    for name in ("1", str(os.getpid())):
        (tmp_path / "proc" / name).mkdir(exist_ok=True)
        (folder / name).touch()
    assert asking(tmp_path, scan) == [os.getpid()]


def test_entries_beyond_what_a_user_needs_are_removed(folder: Path, tmp_path: Path) -> None:
    for number in range(MOST_OF_A_USER + 50):
        (tmp_path / "proc" / str(number + 1)).mkdir(exist_ok=True)
        (folder / str(number + 1)).touch()
    assert len(asking(tmp_path)) == MOST_OF_A_USER
    assert len(list(folder.iterdir())) == MOST_OF_A_USER


def test_without_a_register_nobody_asks_and_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        asking(tmp_path)


def test_an_access_list_names_whom_it_shuts_out() -> None:
    assert users_in(access_list([1001, 5])) == {5, 1001}
    assert users_in(access_list([])) == set()


@pytest.mark.parametrize("mode", [None, 0o644], ids=["a new one", "one that an older agent made for all"])
def test_only_root_may_hold_the_lock(tmp_path: Path, mode: int | None) -> None:
    """Whoever may read a file may lock it."""
    path = tmp_path / "var/lib/clusterctl/lock"
    if mode is not None:
        path.parent.mkdir(parents=True)
        path.touch()
        path.chmod(mode)
    with locked(tmp_path):
        assert path.stat().st_mode & 0o777 == 0o600
