"""Whether a region runs, by its announcement and its lock; and that one is started where none does."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # region.json

import pytest
from clusterctl_infra.names import IS_ENDING
from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.region.client import START_TIMEOUT_S, RegionUnreachable, running_region, start_region

ROW: dict[str, Any] = {"endpoint": "http://127.0.0.1:1", "pid": os.getpid(), "started_at": 1.0}


@pytest.fixture
def home(tmp_path: Path) -> RehearsalHome:
    return RehearsalHome(root=tmp_path)


@pytest.fixture
def locked(home: RehearsalHome) -> Iterator[RehearsalHome]:
    """A home whose lock is held, as by a region that runs."""
    with home.lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield home


def test_a_region_that_has_announced_itself_and_holds_the_lock_runs(locked: RehearsalHome) -> None:
    for row in (ROW, {**ROW, IS_ENDING: False}):
        locked.endpoint_file.write_text(json.dumps(row))
        assert running_region(locked) == row


def test_a_region_that_is_about_to_end_is_none(locked: RehearsalHome) -> None:
    locked.endpoint_file.write_text(json.dumps({**ROW, IS_ENDING: True}))
    assert running_region(locked) is None


@pytest.mark.parametrize("content", ["[]", "null", "7", "{}", '{"pid": null}', "", "{"])
def test_an_announcement_that_names_no_process_is_none(locked: RehearsalHome, content: str) -> None:
    locked.endpoint_file.write_text(content)
    assert running_region(locked) is None


@pytest.mark.parametrize("content", ["[]", "null", json.dumps(ROW)], ids=["a list", "nothing", "a process"])
def test_without_the_lock_there_is_none(home: RehearsalHome, content: str) -> None:
    home.endpoint_file.write_text(content)
    assert running_region(home) is None  # no lock file
    home.lock_file.touch()
    assert running_region(home) is None


class Child:
    """A region's process with its exit code, which is None while it runs."""

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code

    def poll(self) -> int | None:
        return self.exit_code


class Starts:
    """Starts processes that end with these exit codes, one after the other; the last runs, and serves if it may."""

    def __init__(self, *exit_codes: int | None, serves: bool = True) -> None:
        self.left = list(exit_codes)
        self.running: Child | None = None
        self.serves = serves
        self.now = 0.0

    def start(self, home: RehearsalHome) -> Child:
        home.log_file.write_text("its last words\n")
        self.running = Child(self.left.pop(0))
        return self.running

    def find(self, home: RehearsalHome) -> dict[str, Any] | None:
        return ROW if self.serves and self.running is not None and self.running.exit_code is None else None

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def region(self, home: RehearsalHome) -> dict[str, Any]:
        return start_region(home, start=self.start, find=self.find, pause=self.pause, clock=lambda: self.now)


def test_a_process_that_found_the_lock_held_by_an_ending_region_is_followed_by_another(home: RehearsalHome) -> None:
    starts = Starts(0, 0, None)
    assert starts.region(home) == ROW
    assert starts.left == []


def test_a_process_that_failed_is_not_tried_again(home: RehearsalHome) -> None:
    starts = Starts(1, None)
    with pytest.raises(RegionUnreachable, match="does not start: its last words"):
        starts.region(home)
    assert starts.left == [None]


def test_nobody_waits_for_ever(home: RehearsalHome) -> None:
    starts = Starts(None, serves=False)
    with pytest.raises(RegionUnreachable):
        starts.region(home)
    assert starts.now == pytest.approx(START_TIMEOUT_S, abs=0.1)
