"""The only module that prints: data to stdout, everything else to stderr.

Text is shown with its control characters escaped, whoever it came from; bytes go out as they are. Bytes are what a
command on a node wrote (`clusterctl ssh`), which belongs to the person who ran it.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import IO, TextIO

from clusterctl_infra.errors import ClusterctlError

from clusterctl.system.whole_write import WholeWriter
from clusterctl.text.table import display_width, render_table
from clusterctl.text.terminal import UNKNOWN_COLUMNS, UNKNOWN_ROWS, cut_to, encoded, screenful
from clusterctl.text.visible import visible, visible_in_a_line, visible_in_json

ERASE_LINE = "\r\x1b[K"
ERASE_SCREEN = "\x1b[H\x1b[2J"
ALARM, PLAIN = "\x1b[1;31m", "\x1b[0m"
PLAIN_TERMINALS = ("", "dumb")
"""Values of TERM for a terminal that takes no escape sequences, such as an editor's shell, or that is unknown."""


class Output:
    """Two binary streams and what they are attached to; safe to use from several threads."""

    def __init__(
        self,
        *,
        stdout: IO[bytes],
        stderr: IO[bytes],
        encoding: str = "utf-8",
        stdout_is_terminal: bool = False,
        stderr_is_terminal: bool = False,
        stdin: TextIO | None = None,
        is_plain: bool = False,
        has_colour: bool = True,
        size: Callable[[], tuple[int, int]] = lambda: (UNKNOWN_COLUMNS, UNKNOWN_ROWS),
    ) -> None:
        """`is_plain`: the terminals take no escape sequences; `size`: columns and rows of the terminal, now."""
        self._stdout = stdout
        self._stderr = stderr
        self._stdin = sys.stdin if stdin is None else stdin
        self._encoding = encoding
        self._lock = threading.RLock()
        self._live_width = 0
        self._has_lost_notes = False
        self._size = size
        self.stdout_is_terminal = stdout_is_terminal
        self.stderr_is_terminal = stderr_is_terminal
        self.has_live_line = stderr_is_terminal and not is_plain
        self.has_screen = stdout_is_terminal and not is_plain
        self._has_colour = has_colour and self.has_screen

    @classmethod
    def of_process(cls) -> Output:
        """The output on this process's own stdout and stderr; NO_COLOR and TERM=dumb as https://no-color.org says."""
        return cls(
            stdout=io.BufferedWriter(_Stdout(sys.stdout.fileno())),
            stderr=io.BufferedWriter(WholeWriter(sys.stderr.fileno())),
            encoding=sys.stdout.encoding,
            stdout_is_terminal=sys.stdout.isatty(),
            stderr_is_terminal=sys.stderr.isatty(),
            is_plain=os.environ.get("TERM", "") in PLAIN_TERMINALS,
            has_colour=not os.environ.get("NO_COLOR"),
            size=_size_of_terminal,
        )

    def data(self, text: str) -> None:
        """What was asked for, and a newline, to stdout. Raises BrokenPipeError when nobody reads any more."""
        self.data_bytes(self._encoded(visible(text) + "\n"))

    def data_line(self, head: str, text: str, *, is_alarm: bool = False) -> None:
        """One line to stdout: `head`, then `text`, which is red on a terminal if it is an alarm."""
        head, text = visible_in_a_line(head), visible_in_a_line(text)
        if is_alarm and self._has_colour:
            text = f"{ALARM}{text}{PLAIN}"
        self.data_bytes(self._encoded(f"{head}{text}\n"))

    def data_bytes(self, chunk: bytes) -> None:
        """Raw bytes to stdout at once. Raises BrokenPipeError, and ClusterctlError when stdout takes no more."""
        with self._lock:
            self._erase_live()
            self._stdout.write(chunk)
            self._stdout.flush()

    def as_text(self) -> TextIO:
        """Stdout for code that prints text by itself; it fails as `data` does."""
        return io.TextIOWrapper(self._stdout, encoding=self._encoding, errors="replace")

    def json(self, value: object, *, is_line: bool = False) -> None:
        """`value` as JSON to stdout: indented, or as one line of a stream of such lines.

        JSON is UTF-8 (RFC 8259), so in another locale what is not ASCII is escaped: a program reads the same value.
        """
        is_utf8 = codecs.lookup(self._encoding).name == "utf-8"
        self.data(visible_in_json(json.dumps(value, ensure_ascii=not is_utf8, indent=None if is_line else 2)))

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()) -> None:
        """A text table to stdout; columns named in `right` are right-aligned."""
        self.data(render_table(header, rows, right=right))

    def screen(self, text: str) -> None:
        """What was asked for: on a terminal it replaces what was shown before, elsewhere a blank line follows it."""
        if not self.has_screen:
            self.data(text + "\n")
            return
        columns, rows = self._size()
        lines = screenful(visible(text), columns=columns, rows=rows - 1)
        self.data_bytes(self._encoded(ERASE_SCREEN + "".join(f"{line}\n" for line in lines)))

    def note(self, text: str) -> None:
        """A line for the person, to stderr."""
        self.note_bytes(self._encoded(visible(text) + "\n"))

    def note_bytes(self, chunk: bytes) -> None:
        """Raw bytes to stderr at once; it is no reason to stop if they are lost, see `has_lost_notes`."""
        with self._lock:
            self._erase_live()
            self._write_stderr(chunk)

    def error(self, error: ClusterctlError) -> None:
        """The failure, the problems it carries, and the command that helps, to stderr."""
        lines = [f"clusterctl: {error.message}", *getattr(error, "problems", ())]
        if error.hint is not None:
            lines.append(f"  next: {error.hint}")
        self.note("\n".join(lines))

    def live(self, text: str) -> None:
        """Shows a line at the bottom of the terminal, which the next one replaces; does nothing without a terminal.

        It is cut to the terminal's width: of a line that is wrapped, only the last part can be erased.
        """
        if not self.has_live_line:
            return
        columns, _ = self._size()
        text = cut_to(visible_in_a_line(text), columns - 1)
        with self._lock:
            self._write_stderr(self._encoded(ERASE_LINE + text))
            self._live_width = display_width(text)

    @property
    def can_ask(self) -> bool:
        """Whether somebody is at the terminal."""
        return self.stderr_is_terminal and self._stdin.isatty()

    def confirm(self, question: str) -> bool:
        """True when the person at the terminal answers yes; False on anything else, and when nobody is there."""
        return self.can_ask and self._answer(f"{question} [y/N] ").lower() in {"y", "yes"}

    def confirm_word(self, question: str, word: str) -> bool:
        """True when the person at the terminal types exactly this word; False when nobody is there."""
        return self.can_ask and self._answer(f"{question} ") == word

    @property
    def has_lost_notes(self) -> bool:
        """Whether stderr has refused something that somebody may still want to read."""
        return self._has_lost_notes

    def close(self) -> None:
        """Erases what `live` left; all else is written already."""
        with self._lock:
            self._erase_live()

    def _answer(self, question: str) -> str:
        with self._lock:
            self._erase_live()
            self._write_stderr(self._encoded(visible(question)))
        return self._stdin.readline().strip()

    def _erase_live(self) -> None:
        if self._live_width:
            self._live_width = 0
            self._write_stderr(ERASE_LINE.encode())

    def _write_stderr(self, chunk: bytes) -> None:
        try:
            self._stderr.write(chunk)
            self._stderr.flush()
        except BrokenPipeError:
            pass  # the reader has what it wanted
        except OSError:
            self._has_lost_notes = True

    def _encoded(self, text: str) -> bytes:
        return encoded(text, self._encoding)


def _size_of_terminal() -> tuple[int, int]:
    """Columns and rows of the terminal that stderr is, or stdout."""
    for stream in (sys.stderr, sys.stdout):
        with contextlib.suppress(OSError, ValueError):
            found = os.get_terminal_size(stream.fileno())
            if found.columns and found.lines:
                return found.columns, found.lines
    return UNKNOWN_COLUMNS, UNKNOWN_ROWS


def unshown_by(show: Callable[[], None]) -> BrokenPipeError | ClusterctlError | None:
    """Why stdout refused what `show` prints, for a caller that has to go on anyway; None if it did not."""
    try:
        show()
    except (BrokenPipeError, ClusterctlError) as e:
        return e
    return None


class _Stdout(WholeWriter):
    """The stream for requested data, so a write that fails is an error."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as e:
            raise ClusterctlError(f"stdout cannot be written: {e.strerror}") from e
