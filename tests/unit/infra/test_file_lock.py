"""Locks of files, on file systems that have some and on those that have none."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_infra.file_lock import lock_within, try_lock
from clusterctl_infra.provider.local_home import LOCK_NAME, LocalHome


class FileSystem:
    """A file system whose `flock` gives these answers in turn: an error number, or None for a lock that is granted."""

    def __init__(self, *answers: int | None) -> None:
        self._answers = iter(answers)

    def flock(self, descriptor: int, operation: int) -> None:
        number = next(self._answers)
        if number is not None:
            raise OSError(number, os.strerror(number))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_told_from_a_lock_that_is_held(number: int) -> None:
    assert not try_lock(1, flock=FileSystem(number).flock)
    assert try_lock(1, flock=FileSystem(None).flock)
    with pytest.raises(BlockingIOError):
        try_lock(1, flock=FileSystem(errno.EWOULDBLOCK).flock)
    with pytest.raises(OSError, match="Stale file handle"):
        try_lock(1, flock=FileSystem(errno.ESTALE).flock)


def test_a_lock_is_waited_for_and_not_for_ever() -> None:
    held = errno.EWOULDBLOCK
    waits: list[float] = []
    assert lock_within(1, 5, flock=FileSystem(held, held, None).flock, clock=lambda: 0.0, sleep=waits.append)
    assert len(waits) == 2
    now = iter((0.0, 1.0, 6.0))
    with pytest.raises(TimeoutError, match="another process has held it for more than 5 s"):
        lock_within(1, 5, flock=FileSystem(held, held).flock, clock=lambda: next(now), sleep=waits.append)


def test_inventories_are_locked_by_a_file_that_is_open_for_writing(tmp_path: Path) -> None:
    """NFS has no exclusive lock of what is open for reading, as a folder is."""
    home = LocalHome(root=tmp_path)
    with home.inventory_lock("train"):
        other = os.open(tmp_path / "inventory" / LOCK_NAME, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            try_lock(other)
        assert (tmp_path / "inventory" / LOCK_NAME).stat().st_mode & 0o777 == 0o600
    assert try_lock(other)
    os.close(other)
