"""Storage whose server is away, as a mount that nobody serves: FUSE, needs root."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl.on_node.job.node_ranks import refusal_argv
from clusterctl.on_node.job.shared_storage import present_paths

from tests.integration.rehearsed import run

MNT_DETACH = 2


@pytest.fixture
def dead_mount(tmp_path: Path) -> Iterator[Path]:
    """A folder at which every look waits for a server that says nothing."""
    place = tmp_path / "dead"
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    assert libc.mount(b"dead", os.fsencode(place), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
    try:
        yield place
    finally:
        libc.umount2(os.fsencode(place), MNT_DETACH)
        os.close(device)


def test_a_mount_whose_server_is_away_is_named_within_its_time(dead_mount: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"^{dead_mount}: no answer within 0.5 s; its server is away"):
        present_paths([str(tmp_path), str(dead_mount)], within_s=0.5)


def test_storage_that_answers_is_told_from_what_is_not_there(tmp_path: Path) -> None:
    assert present_paths([str(tmp_path), str(tmp_path / "none")]) == (str(tmp_path),)


def test_what_cannot_be_started_says_why_and_fails() -> None:
    done = run(refusal_argv('/x: no 100% "answer" $HOME'), env=dict(os.environ), cwd=Path("/"), timeout_s=10)
    assert (done.exit_code, done.stdout) == (1, 'clusterctl: /x: no 100% "answer" $HOME\n')
