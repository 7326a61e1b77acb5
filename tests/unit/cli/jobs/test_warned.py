"""A node's warning of its end, passed on to all nodes of a job."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.coordination import LOST_AFTER_S, Coordination
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.warned import (
    LOOK_S,
    OWN_WATCH_S,
    Warnings,
    in_words,
    is_passed_on,
    is_same,
    present_warning,
    signal_asking,
)

from tests.unit.cli.jobs.job_specs import spec

WALL_S = 2_000_000_000.0
WARNED = {"at": 1100.0, "by": "AWS", "stage": 2, "hook": False, "signalled": []}
BY_AWS = {"ends_s": WALL_S + 100, "stage": 2, "why": "AWS takes this spot machine back"}
BY_GUARD = {**BY_AWS, "why": "the cluster's deadline"}


def node(root: Path, **changes: Any) -> Path:
    """Writes the files of a node that is up for 1000 s and whose watch has warned; returns `root`."""
    for name, text in (("run/clusterctl/warned", json.dumps({**WARNED, **changes})), ("proc/uptime", "1000.0 1.0\n")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, BY_AWS),
        ({"stage": 0}, None),
        ({"stage": "?"}, None),
        (
            {"at": WALL_S + 900, "by": "guard", "stage": 1},
            {"ends_s": WALL_S + 900, "stage": 1, "why": "the cluster's deadline"},
        ),
    ],
)
def test_an_end_is_told_in_unix_time_by_whichever_clock_the_watch_counts_it(
    tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    assert present_warning(node(tmp_path, **changes), WALL_S) == expected


def test_a_node_without_a_watch_warns_of_nothing(tmp_path: Path) -> None:
    assert present_warning(tmp_path, WALL_S) is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (None, None, True),
        (BY_AWS, None, False),
        (BY_AWS, {**BY_AWS, "ends_s": WALL_S + 101, "slot": 3}, True),
        (BY_AWS, {**BY_AWS, "ends_s": WALL_S + 200}, False),
        (BY_AWS, {**BY_AWS, "stage": 1}, False),
    ],
)
def test_the_same_end_told_again_is_no_other_warning(first: Any, second: Any, expected: bool) -> None:
    assert is_same(first, second) is expected


@pytest.mark.parametrize(
    ("heard", "own", "heard_for_s", "expected"),
    [
        (None, None, 9.0, False),
        (BY_AWS, None, 0.0, True),
        (BY_AWS, BY_AWS, 9.0, False),
        (BY_AWS, {**BY_AWS, "ends_s": WALL_S + 900}, 0.0, True),
        (BY_GUARD, None, 0.5, False),
        (BY_GUARD, None, OWN_WATCH_S, True),
    ],
    ids=[
        *("nothing", "another node's", "its own", "another node's, before its own"),
        *("all nodes' deadline, which the watch here is about to tell", "one that the watch here does not tell"),
    ],
)
def test_a_nodes_processes_are_told_of_another_nodes_end(
    heard: Any, own: Any, heard_for_s: float, expected: bool
) -> None:
    assert is_passed_on(heard, own, heard_for_s=heard_for_s) is expected


def test_all_nodes_hear_of_the_first_end_and_of_its_going_away() -> None:
    coordination = Coordination(spec(), 0.0)
    for slot in (1, 3):
        coordination.receive(slot, {"phase": "ready"})
    started = coordination.look(1.0, WALL_S, None)
    assert "warning" not in started
    coordination.receive(3, {"phase": "running", "warning": BY_AWS})
    coordination.receive(1, {"phase": "running", "warning": {**BY_AWS, "ends_s": WALL_S + 900, "stage": 1}})
    warned = coordination.look(2.0, WALL_S, None)
    assert warned == {**started, "warning": {**BY_AWS, "slot": 3, "name": "train-3"}}
    coordination.receive(3, {"phase": "running", "warning": {**BY_AWS, "ends_s": WALL_S + 101}})
    assert coordination.look(3.0, WALL_S, None) is warned
    for slot in (1, 3):
        coordination.receive(slot, {"phase": "running", "warning": None})
    assert coordination.look(4.0, WALL_S, None)["warning"] is None


def test_a_node_that_is_lost_after_its_warning_is_lost_for_that_reason() -> None:
    coordination = Coordination(spec(), 0.0)
    for slot in (1, 3):
        coordination.receive(slot, {"phase": "ready", "warning": BY_AWS if slot == 3 else None})
    coordination.look(1.0, WALL_S, None)
    coordination.gone(3, 2.0)
    directive = coordination.look(3.0 + LOST_AFTER_S, WALL_S, None)
    assert directive["state"] == "lost"
    assert directive["why"] == "Node 3 (train-3) was lost: before it: AWS takes this spot machine back"


def test_the_file_says_what_the_job_was_told_and_goes_with_the_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, lines, uptimes_s = Layout(tmp_path), list[str](), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: uptimes_s[-1])
    layout.folder("first").mkdir(parents=True)
    heard = {**BY_AWS, "slot": 3, "name": "train-3"}
    warnings = Warnings(layout, "first", lines.append)
    assert warnings.look(heard) is None
    assert json.loads(layout.warning("first").read_text()) == heard
    node(tmp_path)
    uptimes_s.append(100.0 + LOOK_S / 2)
    assert warnings.look(None) is None, "it looks twice a second, not more often"
    assert layout.warning("first").exists()
    uptimes_s.append(100.0 + LOOK_S)
    own = warnings.look(None)
    assert own is not None
    assert own["why"] == BY_AWS["why"]
    assert not layout.warning("first").exists()
    warned, taken_back = lines
    assert warned.startswith("clusterctl: Node 3 (train-3) ends in ")
    assert taken_back == "clusterctl: no node of the job is about to end any more"


def test_a_warning_that_the_disk_does_not_take_is_told_in_the_output_all_the_same(tmp_path: Path) -> None:
    """A full disk is no reason to lose the job."""
    lines: list[str] = []
    warnings = Warnings(Layout(tmp_path), "first", lines.append)  # its folder is not there
    assert warnings.look({**BY_AWS, "slot": 3, "name": "train-3"}) is None
    assert len(lines) == 1


@pytest.mark.parametrize(("left_s", "expected"), [(900.0, "15 minutes"), (119.0, "119 seconds"), (-3.0, "0 seconds")])
def test_the_time_that_is_left_is_told_as_people_say_it(left_s: float, expected: str) -> None:
    assert in_words(left_s) == expected


def no_signal(pid: int, number: int) -> None:
    """For tests in which nobody is signalled."""
    pytest.fail(f"signal {number} to {pid}")


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """The root of a node on which the processes 41, 42 and 43 have asked for the signal; 44 runs and has not."""
    (tmp_path / "run/clusterctl/warn").mkdir(parents=True)
    for pid in ("41", "42", "43", "44"):
        (tmp_path / "proc" / pid).mkdir(parents=True)
    for name in ("41", "42", "43", "README"):
        (tmp_path / "run/clusterctl/warn" / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("processes", "signalled", "expected"),
    [
        ([41, 42, 44], [], [41, 42]),
        ([41, 42, 44], [41], [42]),
        ([41, 42], [41, 42], []),
        ([44], [], []),
        ([], [], []),
    ],
)
def test_processes_of_the_job_that_asked_are_signalled_once(
    asked: Path, processes: list[int], signalled: list[int], expected: list[int]
) -> None:
    sent = list[tuple[int, int]]()
    asking = signal_asking(asked, processes, signalled=signalled, send=lambda pid, number: sent.append((pid, number)))
    assert sent == [(pid, signal.SIGUSR1) for pid in expected]
    assert asking == {41, 42, 43} & set(processes)


def test_whoever_the_watch_of_the_node_has_signalled_is_not_signalled_again(asked: Path) -> None:
    sent = list[int]()
    root = node(asked, signalled=[41])
    assert signal_asking(root, [41, 42], signalled=(), send=lambda pid, number: sent.append(pid)) == {41, 42}
    assert sent == [42]


def test_nobody_asks_for_a_process_that_is_gone(asked: Path) -> None:
    (asked / "proc/41").rmdir()
    assert signal_asking(asked, [41], signalled=(), send=no_signal) == set()


def test_a_node_on_which_nobody_asked_signals_nobody(tmp_path: Path) -> None:
    assert signal_asking(tmp_path, [41], signalled=(), send=no_signal) == set()
