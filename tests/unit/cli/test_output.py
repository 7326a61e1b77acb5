from __future__ import annotations

import errno
import io
import json
from typing import TYPE_CHECKING

from clusterctl.output import ERASE_LINE, Output
from clusterctl_infra.errors import ConfigError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Screen


class BrokenPipe(io.BytesIO):
    def write(self, data: object) -> int:
        raise BrokenPipeError


class FullDisk(io.BytesIO):
    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_data_goes_to_stdout_and_notes_to_stderr(screen: Screen) -> None:
    output = screen.output
    output.data("data")
    output.note("note")
    assert (screen.out, screen.err) == ("data\n", "note\n")


def test_json_lines_are_one_line_each(screen: Screen) -> None:
    screen.output.json({"a": "×\n"}, is_line=True)
    assert screen.out == '{"a": "×\\n"}\n'
    assert json.loads(screen.out) == {"a": "×\n"}


def test_all_problems_come_before_the_hint(screen: Screen) -> None:
    screen.output.error(ConfigError("2 problems", problems=["  one", "  two"], hint="clusterctl plan"))
    assert screen.err == "clusterctl: 2 problems\n  one\n  two\n  next: clusterctl plan\n"


def test_a_live_line_is_erased_before_anything_else_is_said() -> None:
    stderr, stdout = io.BytesIO(), io.BytesIO()
    output = Output(stdout=stdout, stderr=stderr, stderr_is_terminal=True)
    output.live("working")
    output.note("done")
    assert stderr.getvalue().decode() == f"{ERASE_LINE}working{ERASE_LINE}done\n"


def test_a_live_line_needs_a_terminal(screen: Screen) -> None:
    screen.output.live("working")
    assert screen.err == ""


def test_nobody_reading_stderr_is_no_reason_to_stop() -> None:
    stdout = io.BytesIO()
    output = Output(stdout=stdout, stderr=BrokenPipe())
    output.note("note")
    output.data("data")
    assert stdout.getvalue() == b"data\n"
    assert not output.has_lost_notes


def test_notes_that_are_lost_are_remembered_and_stop_nothing() -> None:
    stdout = io.BytesIO()
    output = Output(stdout=stdout, stderr=FullDisk())
    assert not output.has_lost_notes
    output.note("note")
    output.data("data")
    assert output.has_lost_notes
    assert stdout.getvalue() == b"data\n"


def test_a_question_without_a_terminal_is_answered_no(screen: Screen) -> None:
    assert screen.output.confirm("Create 31 resources?") is False
    assert screen.err == ""


def test_a_terminal_that_cannot_show_a_character_gets_another() -> None:
    stdout = io.BytesIO()
    Output(stdout=stdout, stderr=io.BytesIO(), encoding="ascii").data("4 × p5")
    assert stdout.getvalue() == b"4 ? p5\n"
