"""A task's command: who is stopped, when it is killed, and by which exit code it is known."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.on_node.job import warned
from clusterctl.on_node.workflow import task
from clusterctl.on_node.workflow.barrier import KEY_VARIABLE
from clusterctl.on_node.workflow.command import POLL_S, RECLAIM_S, STOPPED, WARNING_FILE, Command, Ended, node_end

PID = 4711
TERM, KILL = int(signal.SIGTERM), int(signal.SIGKILL)


class Child:
    """Ends with `status` after so many looks at it, or once it has had one of the signals."""

    pid = PID

    def __init__(self, *, looks: int = 3, status: int = 0, ends_by: tuple[int, ...] = ()) -> None:
        self.clock_s = 1000.0
        self.had: list[tuple[float, int, int]] = []
        self.during: Callable[[float], None] = lambda now_s: None
        self._looks, self._status, self._ends_by = looks, status, ends_by
        self.command = Command(self._say, 30.0, send=self._send, clock=lambda: self.clock_s)
        self.notes: list[str] = []

    def _say(self, text: str) -> None:
        self.notes.append(text)

    def _send(self, group: int, number: int) -> None:
        self.had.append((self.clock_s - 1000.0, group, number))
        if number in self._ends_by:
            self._status, self._looks = (self._status or -number), 0

    def wait(self, timeout: float) -> int:
        if self._looks == 0:
            return self._status
        self._looks -= 1
        self.clock_s += timeout
        self.during(self.clock_s - 1000.0)
        raise subprocess.TimeoutExpired("command", timeout)

    def ended(self, warning: Path | None = None) -> Ended:
        return self.command.follow(self, {} if warning is None else {WARNING_FILE: str(warning)})


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_a_command_that_ends_by_itself_has_no_signal_and_its_own_code(status: int, code: int) -> None:
    child = Child(status=status)
    assert (child.ended(), child.had) == (Ended(code, ""), [])


def test_a_command_that_is_asked_to_end_has_its_time_and_is_then_killed() -> None:
    child = Child(looks=100, ends_by=(KILL,))
    child.during = lambda now_s: child.command.stop() if now_s == 1.0 else None
    assert child.ended().code == 128 + KILL
    (asked_s, *asked), (killed_s, *killed) = child.had[0], child.had[-1]
    assert (asked, killed) == ([PID, TERM], [PID, KILL])
    assert (asked_s, killed_s) == (1.0, 1.0 + 30.0 + POLL_S)
    assert len(child.had) == 2


def test_who_asks_again_neither_repeats_the_signal_nor_gives_more_time() -> None:
    child = Child(looks=100, ends_by=(KILL,))
    child.during = lambda now_s: child.command.stop()
    child.ended()
    assert [number for _, _, number in child.had] == [TERM, KILL]
    assert child.had[-1][0] == 31.0


def test_a_command_that_was_asked_to_end_before_it_began_is_told_at_once() -> None:
    child = Child(ends_by=(TERM,))
    child.command.stop()
    assert child.ended() == Ended(128 + TERM, "")
    assert child.had == [(0.0, PID, TERM)]


def test_a_command_that_has_just_ended_is_no_reason_to_fail() -> None:
    def gone(group: int, number: int) -> None:
        raise ProcessLookupError

    child = Child(looks=2)
    child.command = Command(child.notes.append, send=gone, clock=lambda: child.clock_s)
    child.during = lambda now_s: child.command.stop()
    assert child.ended() == Ended(0, "")


def test_nothing_is_sent_to_the_number_of_a_command_that_has_ended() -> None:
    """It may be another process's by then."""
    child = Child(looks=0)
    child.ended()
    child.command.stop()
    assert child.had == []


@pytest.mark.parametrize(
    ("why", "in_s", "is_stopped"),
    [
        ("AWS takes this spot machine back", 100.0, True),
        ("AWS takes this spot machine back", RECLAIM_S + 60, False),
        ("the cluster's deadline", 100.0, False),
    ],
)
@pytest.mark.parametrize(("status", "code"), [(0, STOPPED), (7, 7)])
def test_a_command_whose_node_ends_is_stopped_and_never_taken_for_one_that_ended_well(
    tmp_path: Path, why: str, in_s: float, is_stopped: bool, status: int, code: int
) -> None:
    warning = tmp_path / "warning"
    warning.write_text(json.dumps({"why": why, "ends_s": time.time() + in_s}))
    child = Child(looks=4, status=status, ends_by=(TERM,) if status else ())
    ended = child.ended(warning)
    assert [number for _, _, number in child.had] == ([TERM] if is_stopped else [])
    assert ended == (Ended(code, why) if is_stopped else Ended(status, ""))
    assert len(child.notes) == is_stopped


def test_a_command_is_stopped_for_its_nodes_end_but_not_for_the_deadline(tmp_path: Path) -> None:
    """For the deadline the whole job is stopped."""
    file = tmp_path / "warning.json"
    assert node_end(file, 1000.0) is None
    for by, left_s, is_stopped in (
        (warned.AWS, 120.0, True),
        (warned.AWS, 300.0, False),
        ("watch", 100.0, True),
        ("guard", 100.0, False),
    ):
        file.write_text(json.dumps({"ends_s": 1000.0 + left_s, "stage": 2, "why": warned.WHY[by]}))
        wanted = (warned.WHY[by], left_s) if is_stopped else None
        assert node_end(file, 1000.0) == wanted, (by, left_s)


@pytest.mark.parametrize(
    ("command", "failures", "code"),
    [
        (0, [], 0),
        (0, [False], 0),
        (0, [False, True], task.OWN_FAILURE),
        (7, [], 7),
        (7, [True], 7),
    ],
)
def test_a_task_ends_as_its_command_and_with_125_where_only_an_output_was_not_kept(
    command: int, failures: list[bool], code: int
) -> None:
    assert task.exit_code(command, failures) == code


@pytest.mark.parametrize(("port", "expected"), [(12344, 12344), (0, 28102)])
def test_a_task_begins_once_its_group_is_there_and_one_without_a_barrier_at_once(port: int, expected: int) -> None:
    waited: list[tuple[object, ...]] = []

    def wait(*asked: object) -> None:
        waited.append(asked)

    environment = {"JAX_COORDINATOR_ADDRESS": "10.0.8.1:28102", KEY_VARIABLE: "the group's"}
    task.pass_barrier({}, environment, wait)
    assert waited == []
    words = {"names": ["a", "b", "c"], "rank": 2, "connect": "train-1", "port": port, "timeout_s": 60}
    task.pass_barrier(words, environment, wait)
    assert waited == [(3, 2, "train-1", expected, 60.0, "the group's", ["a", "b", "c"])]


def written(folder: Path, **changes: object) -> Path:
    """A task's folder, whose command is never started: the task fails before."""
    words = {
        "mounts": [],
        "inputs": [],
        "outputs": [],
        "checkpoints": [],
        "files": [],
        "output": str(folder / "out"),
        "barrier": {},
        "command": ["never"],
        "again": [],
    }
    (folder / task.WORDS).write_text(json.dumps({**words, **changes}))
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mounts": ["/no/such"]}, "volumeMounts: /no/such is not on this node"),
        ({"inputs": [{"regex": "("}]}, "'('"),
        ({"outputs": [{"regex": "("}]}, "'('"),
        ({"checkpoints": [{"regex": "("}]}, "'('"),
        ({"files": [{"path": "/proc/none/such", "source": "0"}]}, "/proc/none"),
        ({"inputs": [{"link": "/x", "dataset": "/no/such", "version": "", "regex": ""}]}, "/no/such"),
    ],
)
def test_what_is_wrong_around_a_command_is_told_before_it_begins(
    tmp_path: Path, changes: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake must not show only after hours of work."""
    assert task.main(written(tmp_path, **changes)) == task.OWN_FAILURE
    output = capsys.readouterr().out
    assert output.startswith("clusterctl: ")
    assert message in output


def test_a_file_whose_name_is_no_text_can_be_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    out = io.TextIOWrapper(content, encoding="utf-8")
    monkeypatch.setattr("sys.stdout", out)
    assert task.main(written(tmp_path, mounts=["/no/\udcff"])) == task.OWN_FAILURE
    out.flush()
    assert rb"/no/\udcff is not on this node" in content.getvalue()
