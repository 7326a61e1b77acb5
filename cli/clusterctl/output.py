"""The only module that prints: data to stdout, everything else to stderr."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Collection, Iterable, Sequence
from typing import IO, TextIO

from clusterctl_infra.errors import ClusterctlError

from clusterctl.views.table import display_width, render_table
from clusterctl.whole_write import WholeWriter

ERASE_LINE = "\r\x1b[K"


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
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._stdin = sys.stdin if stdin is None else stdin
        self._encoding = encoding
        self._lock = threading.RLock()
        self._live_width = 0
        self.stdout_is_terminal = stdout_is_terminal
        self.stderr_is_terminal = stderr_is_terminal

    @classmethod
    def of_process(cls) -> Output:
        """The output on this process's own stdout and stderr."""
        return cls(
            stdout=_binary(sys.stdout),
            stderr=_binary(sys.stderr),
            encoding="utf-8" if sys.stdout is None else sys.stdout.encoding,
            stdout_is_terminal=sys.stdout is not None and sys.stdout.isatty(),
            stderr_is_terminal=sys.stderr is not None and sys.stderr.isatty(),
        )

    def data(self, text: str) -> None:
        """What was asked for, and a newline, to stdout. Raises BrokenPipeError when nobody reads any more."""
        self.data_bytes(self._encoded(text + "\n"))

    def data_bytes(self, chunk: bytes) -> None:
        """Raw bytes to stdout at once. Raises BrokenPipeError, and ClusterctlError when stdout takes no more."""
        with self._lock:
            self._erase_live()
            try:
                self._stdout.write(chunk)
                self._stdout.flush()
            except BrokenPipeError:
                raise
            except OSError as e:
                raise ClusterctlError(f"stdout cannot be written: {e.strerror}") from e

    def json(self, value: object, *, is_line: bool = False) -> None:
        """`value` as JSON to stdout: indented, or as one line of a stream of them."""
        self.data(json.dumps(value, ensure_ascii=False, indent=None if is_line else 2))

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()) -> None:
        """A text table to stdout; columns named in `right` are right-aligned."""
        self.data(render_table(header, rows, right=right))

    def note(self, text: str) -> None:
        """A line for the person, to stderr."""
        self.note_bytes(self._encoded(text + "\n"))

    def note_bytes(self, chunk: bytes) -> None:
        """Raw bytes to stderr at once; a reader that went away is no reason to stop."""
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
        """A line at the bottom of the terminal that the next one replaces; nothing when stderr is no terminal."""
        if not self.stderr_is_terminal:
            return
        with self._lock:
            self._write_stderr(self._encoded(ERASE_LINE + text))
            self._live_width = display_width(text)

    @property
    def can_ask(self) -> bool:
        """Somebody is at the terminal."""
        return self.stderr_is_terminal and self._stdin.isatty()

    def confirm(self, question: str) -> bool:
        """True when the person at the terminal answers yes; False on anything else, and when nobody is there."""
        return self.can_ask and self._answer(f"{question} [y/N] ").lower() in {"y", "yes"}

    def confirm_word(self, question: str, word: str) -> bool:
        """True when the person at the terminal types exactly this word; False when nobody is there."""
        return self.can_ask and self._answer(f"{question} ") == word

    def close(self) -> None:
        """Erases what `live` left; all else is written already."""
        with self._lock:
            self._erase_live()

    def _answer(self, question: str) -> str:
        with self._lock:
            self._erase_live()
            self._write_stderr(self._encoded(question))
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
            pass

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, errors="replace")


def _binary(stream: TextIO | None) -> IO[bytes]:
    """The stream's bytes; for one that was closed before the start, a place where they vanish."""
    return open(os.devnull, "wb") if stream is None else io.BufferedWriter(WholeWriter(stream.fileno()))
