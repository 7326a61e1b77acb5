"""Control characters in what nodes, AWS, files and names say: shown in every view, sent to no terminal."""

from __future__ import annotations

import io
import json

import pytest
from clusterctl.logs.show import show_line
from clusterctl.logs.stream import LogLine
from clusterctl.output import ERASE_LINE, Output
from clusterctl.text.visible import visible, visible_in_a_line
from clusterctl.top.frame import Cell
from clusterctl.top.screen import NodeMap
from clusterctl_infra.errors import ConfigError

HOSTILE = "a\x1b]0;owned\x07b\x9b31mc\u202ed\re\x7f"
SHOWN = r"a\x1b]0;owned\x07b\x9b31mc\u202ed\re\x7f"


class Terminal:
    """An output on two terminals, and what they were sent."""

    def __init__(self) -> None:
        self.stdout, self.stderr = io.BytesIO(), io.BytesIO()
        self.output = Output(
            stdout=self.stdout,
            stderr=self.stderr,
            stdout_is_terminal=True,
            stderr_is_terminal=True,
            stdin=io.StringIO(),
        )

    @property
    def out(self) -> str:
        return self.stdout.getvalue().decode()

    @property
    def err(self) -> str:
        return self.stderr.getvalue().decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("名前 × é ✓ …", "名前 × é ✓ …"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        (HOSTILE, SHOWN),
        ("\x00\x08\x0b\x0c\x1f", r"\x00\x08\x0b\x0c\x1f"),
        ("\x80\x85\x9f", r"\x80\x85\x9f"),
        ("\u061c\u200e\u200f\u202a\u2066\u2069\u2028", r"\u061c\u200e\u200f\u202a\u2066\u2069\u2028"),
    ],
)
def test_control_characters_are_shown_as_escapes_and_all_else_as_it_is(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_in_a_cell_a_line_break_is_an_escape_too() -> None:
    assert visible_in_a_line("a\nb\tc") == r"a\nb\tc"


def test_notes_data_and_failures_send_no_control_characters() -> None:
    screen = Terminal()
    screen.output.note(HOSTILE)
    screen.output.data(HOSTILE)
    screen.output.error(ConfigError(HOSTILE, problems=[HOSTILE], hint=HOSTILE))
    assert screen.out == f"{SHOWN}\n"
    assert screen.err == f"{SHOWN}\nclusterctl: {SHOWN}\n{SHOWN}\n  next: {SHOWN}\n"


def test_the_living_line_holds_no_control_characters_but_its_own() -> None:
    screen = Terminal()
    screen.output.live(f"{HOSTILE}\n")
    assert screen.err == f"{ERASE_LINE}{SHOWN}\\n"


def test_a_table_stays_one_line_per_row_whatever_its_cells_say() -> None:
    screen = Terminal()
    screen.output.table(["node", "verdict"], [["train-0", HOSTILE], ["train-1", "ready\ntrain-9  failed"]])
    assert screen.out == f"  node     verdict\n  train-0  {SHOWN}\n  train-1  ready\\ntrain-9  failed\n"


def test_json_holds_the_value_itself_and_no_control_character() -> None:
    screen = Terminal()
    screen.output.json({HOSTILE: [HOSTILE]}, is_line=True)
    assert json.loads(screen.out) == {HOSTILE: [HOSTILE]}
    assert visible(screen.out) == screen.out


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (HOSTILE, f"[Node 3] [12:00:00] {SHOWN}\n"),
        (f"Xid 79 {HOSTILE}", f"[Node 3] [12:00:00] \x1b[1;31mXid 79 {SHOWN}\x1b[0m\n"),
    ],
)
def test_a_log_line_is_coloured_by_us_alone(text: str, sent: str) -> None:
    screen = Terminal()
    line = LogLine(slot=3, name="train-3", source="kernel", at_s=1795262400.0, text=text)
    show_line(line, screen.output, has_sources=False, as_json=False)
    assert screen.out == sent


def test_a_log_line_in_a_file_has_no_colour() -> None:
    out = io.BytesIO()
    line = LogLine(slot=0, name="train-0", source="kernel", at_s=1795262400.0, text="Xid 79")
    show_line(line, Output(stdout=out, stderr=io.BytesIO()), has_sources=True, as_json=False)
    assert out.getvalue() == b"[Node 0] [12:00:00] [kernel] Xid 79\n"


def test_the_live_view_of_nodes_draws_no_control_character() -> None:
    drawn = NodeMap()
    drawn.show([(Cell(text="train-0"), Cell(text=HOSTILE, is_bad=True))], cursor=None)
    assert [[cell.text for cell in line] for line in drawn.lines] == [["train-0", SHOWN]]


def test_the_output_of_a_command_of_the_persons_own_is_left_as_it_is() -> None:
    screen = Terminal()
    screen.output.data_bytes(b"\x1b[32mgreen\x1b[0m\r\n")
    screen.output.note_bytes(b"\x1b[31mred\x1b[0m\r\n")
    assert (screen.out, screen.err) == ("\x1b[32mgreen\x1b[0m\r\n", "\x1b[31mred\x1b[0m\r\n")


def test_a_question_shows_what_it_asks_about_in_escapes() -> None:
    class Person(io.StringIO):
        def isatty(self) -> bool:
            return True

    stderr = io.BytesIO()
    output = Output(stdout=io.BytesIO(), stderr=stderr, stderr_is_terminal=True, stdin=Person("n\n"))
    assert not output.confirm(f"end {HOSTILE}?")
    assert stderr.getvalue().decode() == f"end {SHOWN}? [y/N] "
