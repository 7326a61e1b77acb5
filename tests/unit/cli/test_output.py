"""What goes to stdout and stderr, on a terminal and elsewhere, in other locales, and where nobody reads it."""

from __future__ import annotations

import errno
import io
import json
from typing import TYPE_CHECKING

import pytest
from clusterctl.output import ERASE_LINE, ERASE_SCREEN, Output
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


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_live_line_is_never_wrapped_as_only_its_last_part_could_be_erased(columns: int) -> None:
    stderr = io.BytesIO()
    output = Output(stdout=io.BytesIO(), stderr=stderr, stderr_is_terminal=True, size=lambda: (columns, 24))
    output.live("waiting for train-0: no answer for 10 s, " * 9)
    shown = stderr.getvalue().decode().removeprefix(ERASE_LINE)
    assert len(shown) < columns
    assert shown.endswith("…")


def test_a_terminal_without_escape_sequences_gets_none() -> None:
    stderr, stdout = io.BytesIO(), io.BytesIO()
    output = Output(stdout=stdout, stderr=stderr, stdout_is_terminal=True, stderr_is_terminal=True, is_plain=True)
    output.live("working")
    output.data_line("[train-0] ", "Xid 79", is_alarm=True)
    output.screen("cost")
    assert stderr.getvalue() == b""
    assert stdout.getvalue() == b"[train-0] Xid 79\ncost\n\n"
    assert not output.has_live_line


def test_without_colour_an_alarm_is_a_plain_line_and_a_screen_is_drawn_all_the_same() -> None:
    stdout = io.BytesIO()
    output = Output(stdout=stdout, stderr=io.BytesIO(), stdout_is_terminal=True, has_colour=False)
    output.data_line("", "Xid 79", is_alarm=True)
    output.screen("cost")
    assert stdout.getvalue().decode() == f"Xid 79\n{ERASE_SCREEN}cost\n"


def test_a_screen_is_drawn_in_place_and_cut_to_the_terminal() -> None:
    stdout = io.BytesIO()
    output = Output(stdout=stdout, stderr=io.BytesIO(), stdout_is_terminal=True, size=lambda: (40, 5))
    output.screen("\n".join([*(f"line {number}" for number in range(9)), "x" * 50]))
    output.screen("x" * 50)
    first, second = stdout.getvalue().decode().split(ERASE_SCREEN)[1:]
    assert first.splitlines() == ["line 0", "line 1", "line 2", "… 7 more lines: make the window higher"]
    assert second == "x" * 39 + "…\n"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", "✓ 4 × p5 · 33 °C –"), ("iso-8859-1", "+ 4 × p5 · 33 °C -"), ("ascii", "+ 4 x p5 - 33  C -")],
)
def test_another_locale_gets_signs_that_it_has(encoding: str, shown: str) -> None:
    stderr = io.BytesIO()
    Output(stdout=io.BytesIO(), stderr=stderr, encoding=encoding).note("✓ 4 × p5 · 33 °C –")
    assert stderr.getvalue().decode(encoding) == shown + "\n"


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
    Output(stdout=stdout, stderr=io.BytesIO(), encoding="ascii").data("4 × p5 in Zürich")
    assert stdout.getvalue() == b"4 x p5 in Z?rich\n"
